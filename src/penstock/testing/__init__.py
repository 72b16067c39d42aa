"""What our tests and yours need to try Penstock out: a public package that nothing in the library imports."""
