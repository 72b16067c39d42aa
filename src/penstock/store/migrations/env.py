"""Run by Alembic: the connection and its transaction come from :mod:`penstock.store.migrating`."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
