"""Measures how the time from StableHLO text to machine code grows with the length of the text.

    cargo build --release --workspace
    python3 tests/benches/jax_copies.py [FILE.mlir]

`@main` is written 1, 4 and 16 times into one function, each copy with arguments of its own.
"""

import pathlib
import re
import sys
import tempfile

import command

ROUNDS = 5
HERE = pathlib.Path(__file__).resolve().parent


def copies(text, count):
    """The text with `count` copies of the body of `@main`."""
    head, rest = re.match(r"(.*?)(  func\.func public @main.*)", text, re.S).groups()
    main, rest = re.match(r"(.*?\n  } *(?:loc\([^\n]*\))?\n)(.*)", rest, re.S).groups()
    params, results, body, values, types = re.match(
        r"  func\.func public @main\((.*?)\) -> (.*?) \{\n(.*)    return (.*?) : (.*?)\n", main, re.S
    ).groups()
    types = re.sub(r" loc\(.*", "", types)
    renamed = lambda part, at: re.sub(r"%(\w)", rf"%c{at}_\1", part)
    joined = lambda part: ", ".join(renamed(part, at) for at in range(count))
    whole = f"  func.func public @main({joined(params)}) -> ({', '.join([types] * count)}) {{\n"
    whole += "".join(renamed(body, at) for at in range(count))
    return head + whole + f"    return {joined(values)} : {', '.join([types] * count)}\n  }}\n" + rest


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "../../examples/jax/optax_step.mlir")
    text = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 4, 16):
            program = pathlib.Path(folder, "f.mlir")
            program.write_text(copies(text, count))
            lines = len(program.read_text().splitlines())
            params = re.search(r"@main\((.*?)\) ->", program.read_text(), re.S).group(1).count("%")
            arguments = [f"arg{at}=zeros" for at in range(params)]
            stats = [command.bench(program, arguments, 1) for _ in range(ROUNDS)]
            print(f"{count:3} copies {lines:7} lines {min(one['compile_ms'] for one in stats):9.1f} ms")


main()
