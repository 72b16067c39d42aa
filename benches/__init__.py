"""How fast the engine is, against the same work in plain driver code: one file per question.

``make bench`` runs them. Each question measures ours and its ceiling in turns (ABAB), on databases made by our own
migrations, with the same durability, and answers medians with their spread. What the figures mean is told in
``docs/performance.md``.
"""
