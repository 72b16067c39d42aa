"""Run by Alembic: the connection and its transaction come from :mod:`penstock.store.migrating`."""

from alembic import context

from penstock.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
