"""Tables out: rows as CSV text or as a workbook, however many, in the same memory."""
