"""The history of the schema. Migrations only add what old code can live with."""
