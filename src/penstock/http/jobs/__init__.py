"""Jobs over HTTP: their status, why they failed and who stopped them, and what people do to them."""
