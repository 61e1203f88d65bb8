import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'

const here = await hasNamespaces()

/** A Python of the PATH that has matplotlib; without one the test of it is skipped. */
const drawing = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin']
  .map((folder) => join(folder, 'python3'))
  .find((python) => {
    try {
      if (!existsSync(python)) return false
      execFileSync(python, ['-I', '-c', 'import matplotlib'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })

let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend()
  session = await backend.open()
})
afterAll(() => backend.close())

describe('one Python for a session', () => {
  test('CP-17 variables, imports and functions of one call are there for the next', async () => {
    await session.python('import math\nx = 40\ndef double(n):\n    return 2 * n')
    expect(printed(await session.python('print(double(x), math.floor(2.5))'))).toBe('80 2\n')
  })

  test.each([
    ['a value', '1 + 1', '2\n'],
    ['text, quoted', '"a\\nb"', "'a\\nb'\n"],
    ['nothing for None', 'None', ''],
    ['only the last expression', '1\n2\n3', '3\n'],
    ['nothing for a statement', 'y = 5', ''],
    ['what was printed, then the value', 'print("a")\n7', 'a\n7\n'],
    ['the last value as _', '_ + 1', '8\n'],
  ])('the last expression is shown as at a prompt: %s', async (_what, code, stdout) => {
    expect(printed(await session.python(code))).toBe(stdout)
  })

  test.each([
    ['an exception', 'def f():\n    raise ValueError("no")\nf()', /ValueError: no\n$/],
    ['a syntax error', 'x = = 1', /SyntaxError/],
    ['a NUL', 'x = 1\0', /null bytes/],
    ['an exception that cannot be shown', 'class E(Exception):\n  def __str__(self): raise self\nraise E()', /E/],
  ])('a program that fails is an answer with a traceback of its own: %s', async (_what, code, expected) => {
    const { stderr, return_code } = await session.python(code)
    expect(return_code).toBe(1)
    expect(stderr).toMatch(expected)
    expect(stderr).not.toContain('interpreter.py')
  })

  test('a traceback shows the line it speaks of', async () => {
    const { stderr } = await session.python('a = 1\nb = a / 0')
    expect(stderr).toContain('b = a / 0')
  })

  test.each([
    ['sys.exit(3)', 3, ''],
    ['sys.exit()', 0, ''],
    ['sys.exit("words")', 1, 'words\n'],
    ['exit(4)', 4, ''],
  ])('%s ends the call and not the session', async (code, expected, stderr) => {
    const left = await session.python(`import sys\nkept = 1\n${code}`)
    expect([left.return_code, left.stderr]).toEqual([expected, stderr])
    expect(printed(await session.python('kept'))).toBe('1\n')
  })

  test('what a dataclass, a pickle and a subclass need of a module named __main__ is there', async () => {
    const code = `
import dataclasses, pickle
@dataclasses.dataclass
class Point:
    x: int
pickle.loads(pickle.dumps(Point(3)))`
    expect(printed(await session.python(code))).toBe('Point(x=3)\n')
  })

  test('a module written by one call is imported by the next, also when it was changed', async () => {
    await session.python('open("helper.py", "w").write("value = 1")')
    expect(printed(await session.python('import helper; helper.value'))).toBe('1\n')
  })

  test('figures that nobody saved become files, named in the result', async () => {
    const own = await backend.open()
    // stands in for a library that is large and not everywhere; these are the calls of its that we make
    const library = `
import os
os.makedirs("matplotlib")
open("matplotlib/__init__.py", "w").close()
open("matplotlib/pyplot.py", "w").write("""
figures = {}
class Figure:
    def savefig(self, name): open(name, "w").write("drawn")
def figure(number=None):
    number = number or len(figures) + 1
    return figures.setdefault(number, Figure())
def get_fignums(): return sorted(figures)
def close(number): del figures[number]
""")`
    printed(await own.python(library))
    const drawn = await own.python('import matplotlib.pyplot as plt\nplt.figure(); plt.figure(); None')
    expect(drawn.content.map(({ filename }) => filename)).toEqual(['figure-1.png', 'figure-2.png'])
    expect(
      (await own.python('plt.figure(); plt.figure().savefig("mine.png"); plt.close(2)')).content.map(
        ({ filename }) => filename,
      ),
    ).toEqual(['figure-3.png', 'mine.png'])
    expect((await own.python('plt.get_fignums()')).stdout).toBe('[]\n')
    await own.end()
  })

  test.skipIf(!drawing)('figures of matplotlib, where it is installed, become files that are pictures', async () => {
    const drawn = await openBackend({ python: drawing as string, warmSessions: 1 })
    onTestFinished(() => drawn.close())
    const own = await drawn.open()
    const code = 'import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title("é")\nplt.show()'
    const result = await own.python(code, 60)
    expect(result).toMatchObject({ return_code: 0, stderr: '' })
    expect(result.content.map(({ filename }) => filename)).toEqual(['figure-1.png'])
    const { bytes, headers } = await own.get('figure-1.png')
    expect(headers.get('content-type')).toBe('image/png')
    expect(bytes.subarray(1, 4).toString()).toBe('PNG')
    // saved by the program itself: not a second time
    const saved = await own.python('plt.plot([1])\nplt.savefig("mine.png")\nplt.close("all")', 60)
    expect(saved.content.map(({ filename }) => filename)).toEqual(['mine.png'])
  })

  test.skipIf(!here)('processes can be used, and end with their call', async () => {
    const code = 'import multiprocessing\nwith multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))'
    expect(printed(await session.python(code))).toBe('[1, 2]\n')
  })
})

describe('output', () => {
  test('C9 what goes around Python is captured in order', async () => {
    const code =
      'import os, subprocess\nprint("a")\nos.write(1, b"b\\n")\nsubprocess.run("echo c", shell=True)\nprint("d")'
    expect(printed(await session.python(code)).replace(/CompletedProcess.*\n/, '')).toBe('a\nb\nc\nd\n')
  })

  test('stdout and stderr stay apart', async () => {
    const both = await session.python('import sys\nprint("o")\nprint("e", file=sys.stderr)')
    expect(both).toMatchObject({ stdout: 'o\n', stderr: 'e\n', return_code: 0 })
  })

  test('BR-124 too much is cut with a count, and the exit code is the true one', async () => {
    const code = 'import sys\nfor i in range(100000): print("x" * 50)\nprint("END")\nsys.exit(3)'
    const { stdout, stderr, return_code } = await session.python(code)
    expect(return_code).toBe(3)
    expect(stderr).toBe('')
    const kept = 1024 * 1024
    expect(stdout.startsWith(`${'x'.repeat(50)}\n`)).toBe(true)
    expect(stdout.endsWith(`\n[output cut: ${100_000 * 51 + 4 - kept} more bytes]`)).toBe(true)
    expect(Buffer.byteLength(stdout)).toBeLessThan(kept + 100)
  })

  test.each([0, 1, 2, 3])(
    'BR-124 C12 characters cut at the limit, shifted by %i, leave no broken one',
    async (shift) => {
      const { stdout } = await session.python(`print("a" * ${shift} + "😀" * 300000)`)
      expect(stdout).not.toContain('\ufffd')
      const [text = '', rest = ''] = stdout.split('\n[output cut: ')
      expect(text).toBe('a'.repeat(shift) + '😀'.repeat((text.length - shift) / 2))
      expect(Number.parseInt(rest, 10)).toBe(shift + 1_200_001 - Buffer.byteLength(text))
    },
  )

  test('C12 bytes that are no UTF-8, lone surrogates, NUL and escapes come as valid text', async () => {
    const code = 'import sys\nsys.stdout.buffer.write(b"a\\xffb\\0\\x1b[31m")\nsys.stdout.flush()\nprint("\\ud800é")'
    expect(printed(await session.python(code)).replace('9\n', '')).toBe('a\ufffdb\0\u001b[31m\\ud800é\n')
  })

  test('C10 there is nothing to read from', async () => {
    const { stderr } = await session.python('input()')
    expect(stderr).toContain('EOFError')
    expect(printed(await session.python('import os; os.read(0, 10)'))).toBe("b''\n")
  })

  test('C11 what goes to the first streams of all is in the call that wrote it', async () => {
    const own = await backend.open()
    expect(
      await own.python('import sys; print("one", file=sys.__stdout__); print("two", file=sys.__stderr__)'),
    ).toMatchObject({ stdout: 'one\n', stderr: 'two\n' })
    expect(printed(await own.python('sys.stdout = None; sys.stdout = sys.__stdout__; print("three")'))).toBe('three\n')
    expect(printed(await own.python('print("four")'))).toBe('four\n')
  })

  test.each([
    'sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")',
    'sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8"); sys.stderr.detach()',
    'del sys.stdout, sys.stderr, sys.stdin',
    'sys.stderr = None; sys.exit("left")',
    'sys.exit(type("Odd", (), {"__str__": lambda _: 1 / 0})())',
    'sys.exit(type("Odd", (int,), {"__bool__": lambda _: 1 / 0, "__lt__": lambda *_: 1 / 0})(7))',
    'sys.settrace(lambda *_: 1 / 0)',
    'sys.setprofile(lambda *_: 1 / 0)',
    'signal.signal(signal.SIGALRM, lambda *_: 1 / 0); _ = signal.setitimer(signal.ITIMER_REAL, 0.05)',
    'class Late(OSError): pass\ndef late(*_): raise Late\nsignal.signal(signal.SIGALRM, late); _ = signal.setitimer(signal.ITIMER_REAL, 0.05)',
    'importlib.invalidate_caches(); sys.path_importer_cache.clear()',
  ])('C11 variables outlive %s', async (code) => {
    const own = await backend.open()
    await own.python(`import importlib, io, signal, sys\nkept = 6\n${code}`)
    await new Promise((done) => setTimeout(done, 150))
    expect(await own.python('signal.setitimer(signal.ITIMER_REAL, 0); print(kept * 7)')).toMatchObject({
      stdout: '42\n',
      stderr: '',
      return_code: 0,
    })
    await own.end()
  })

  test('a program ends with the code and the words that it gives', async () => {
    const own = await backend.open()
    const left = async (code: string) => {
      const { return_code, stderr } = await own.python(`import sys\n${code}`)
      return [return_code, stderr]
    }
    expect(await left('sys.exit(True)')).toEqual([1, ''])
    expect(await left('sys.exit(None)')).toEqual([0, ''])
    expect(await left('sys.exit("bye")')).toEqual([1, 'bye\n'])
    expect(await left('sys.stderr = None; sys.exit("bye")')).toEqual([1, 'bye\n'])
    expect(await left('sys.exit(type("Odd", (int,), {"__bool__": lambda _: 1 / 0})(7))')).toEqual([7, ''])
  })

  test('nothing of ours is among what a program finds', async () => {
    const own = await backend.open()
    const code =
      'import signal, sys\nprint(signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL)\nprint([path for path in [*sys.path, *sys.path_importer_cache, *sys.modules] if "tollgate" in path or "zygote" in path])'
    expect(printed(await own.python(code))).toBe('True\n[]\n')
  })

  test.each([
    'import sys; sys.stdout = None',
    'import sys; sys.stdout.close(); sys.stderr.close()',
    'import os; os.close(1); os.close(2)',
    'import os; n = os.open("/dev/null", os.O_RDWR); os.dup2(n, 0); os.dup2(n, 1); os.dup2(n, 2)',
    'import os; os.closerange(0, 256)',
    'held = [open("/dev/null") for _ in range(200)]',
    'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)',
    'import sys; sys.displayhook = None; sys.excepthook = None',
    'import builtins; builtins.print = None; del builtins.open',
    'import sys; sys.modules.clear()',
  ])('C11 C15 after %s the next call answers', async (code) => {
    const own = await backend.open()
    await own.python(code)
    const next = await own.python('6 * 7')
    expect(next.stdout).toBe('42\n')
    await own.end()
  })
})
