"""Finding the jobs whose time has come: few of very many."""

from penstock.store.migrations.indexes import NewIndex

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

indexes = (NewIndex("ix_jobs_run_at", "jobs", ("run_at",), where="run_at IS NOT NULL AND state = 'created'"),)
