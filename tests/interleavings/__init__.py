"""Operations run statement by statement in every order: see docs/explanation/correctness.md."""
