import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** As much of a notebook's kernel as its clients see: one scope, output as it is written, the last expression's value. */
const KERNEL = `
import ast, json, os, sys, traceback
wire = os.fdopen(3, 'wb', buffering=0)
def tell(**message):
    wire.write(json.dumps(message, ensure_ascii=False).encode('utf-8', 'surrogatepass') + b'\\n')
class Stream:
    encoding = 'utf-8'
    def __init__(self, kind): self.kind = kind
    def write(self, text):
        if text: tell(type=self.kind, text=text)
        return len(text)
    def flush(self): pass
sys.stdout, sys.stderr = Stream('stdout'), Stream('stderr')
scope = {'__name__': '__main__', 'show_png': lambda data: tell(type='result', is_main_result=False, text='<Figure>', png=data)}
count = 0
for line in sys.stdin:
    count += 1
    tell(type='number_of_executions', execution_count=count)
    try:
        cell = ast.parse(json.loads(line))
        last = ast.Expression(cell.body.pop().value) if cell.body and isinstance(cell.body[-1], ast.Expr) else None
        exec(compile(cell, '<cell>', 'exec'), scope)
        value = eval(compile(last, '<cell>', 'eval'), scope) if last else None
        if value is not None: tell(type='result', is_main_result=True, text=repr(value))
    except BaseException as error:
        tell(type='error', name=type(error).__name__, value=str(error), traceback=traceback.format_exc())
    tell(type='end_of_execution')
`

export interface FakeKernel {
  /** Runs after what was asked before, whoever still listens; gives the answer line by line, as bytes. */
  run(code: string): AsyncGenerator<Buffer>
  restart(): Promise<void>
  close(): Promise<void>
}

/** The system's own first: a version manager's starts several programs before it. */
const env = { PATH: `/usr/bin:/usr/local/bin:${process.env.PATH ?? ''}` }
const NEWLINE = Buffer.from('\n')

/** A Python of this machine: for tests of clients, no sandbox at all. */
export function startKernel(cwd: string): FakeKernel {
  let child: ChildProcess | undefined
  let turn: Promise<unknown> = Promise.resolve()

  function start(): ChildProcess {
    const started = spawn('python3', ['-I', '-u', '-c', KERNEL], {
      cwd,
      env,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    })
    started.stdin?.on('error', () => {}) // one that was killed answers nothing, which its client sees
    return started
  }
  const stop = async () => {
    if (!child) return
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill('SIGKILL')
    await ended
  }

  return {
    async *run(code) {
      const before = turn
      let done = () => {}
      turn = new Promise<void>((resolve) => {
        done = resolve
      })
      await before
      child ??= start()
      const lines = createInterface({ input: child.stdio[3] as Readable })
      const queue = toQueue(lines, done)
      ;(child.stdin as Writable).write(`${JSON.stringify(code)}\n`)
      yield* queue
    },
    async restart() {
      await stop()
      turn = Promise.resolve()
      child = undefined
    },
    close: stop,
  }
}

/** What is written reaches the queue whether or not anybody takes it: code goes on when its client leaves. */
async function* toQueue(lines: ReturnType<typeof createInterface>, done: () => void): AsyncGenerator<Buffer> {
  const waiting: string[] = []
  let wake = () => {}
  let isOver = false
  const over = () => {
    isOver = true
    lines.close()
    done()
    wake()
  }
  lines.on('line', (line) => {
    waiting.push(line)
    if (line.includes('"end_of_execution"')) over()
    wake()
  })
  lines.once('close', over)
  while (true) {
    const line = waiting.shift()
    if (line !== undefined) yield Buffer.concat([Buffer.from(line), NEWLINE])
    else if (isOver) return
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
}
