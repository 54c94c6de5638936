"""GLM 4's lines: no round trip without a declared tool, so only what must not make reading slow."""

from __future__ import annotations

SOUP = {
    "lines": "<|assistant|>x\n{",
    "calls": '<|assistant|>x\n{"y": "z"}',
    "code": "<|assistant|>x\n```python\ntool_call(",
    "tokens": "<|assistant|>",
}
