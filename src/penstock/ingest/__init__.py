"""Reading what people upload: tables of delimited text and spreadsheets, a row at a time."""
