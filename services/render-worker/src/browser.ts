import { randomUUID } from 'node:crypto'
import type { Log } from '@tollgate/telemetry'
import { type Browser, chromium } from 'playwright-core'
import { findProcess, treeBytes } from './process-tree.ts'

export const browserEnds = ['closed', 'crash', 'memory', 'stuck', 'worn'] as const
export type BrowserEnd = (typeof browserEnds)[number]

export interface BrowserOptions {
  executable: string
  isSandboxed: boolean
  memoryBytes: number
  pagesPerBrowser: number
  log: Log
  onEnd: (why: BrowserEnd) => void
}

/** One page's turn in a browser. */
export interface Lease {
  browser: Browser
  /** Why the browser ended under the page, when it did. */
  readonly ended: BrowserEnd | undefined
  /** The browser does not do what it is told: it is killed, with all its pages. */
  kill(why: BrowserEnd): void
  giveBack(): void
}

/** A browser that is there when it is wanted, and another when it is not any more. */
export interface BrowserKeeper {
  take(): Promise<Lease>
  close(): Promise<void>
}

const WATCH_EVERY_MS = 500
const START_MS = 20_000
const CLOSE_MS = 2_000

/**
 * What is not in playwright's own list. No name is looked up and no connection made but through a page's proxy: that of the
 * browser itself leads nowhere, and loopback is no exception to it.
 */
const ARGUMENTS = [
  '--disable-quic',
  '--dns-prefetch-disable',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--disable-gpu',
  '--disable-remote-fonts',
  '--no-pings',
  '--js-flags=--max-old-space-size=512',
]
const NOWHERE = { server: 'http://127.0.0.1:1', bypass: '<-loopback>' }

interface Held {
  browser: Browser
  pid: number | undefined
  pages: number
  busy: number
  ended: BrowserEnd | undefined
  retire(): void
  end(why: BrowserEnd): void
}

export function openBrowsers(options: BrowserOptions): BrowserKeeper {
  let current: Promise<Held> | undefined
  const held = new Set<Held>()

  /** `retire` is called when it takes no more pages: from then on another is started for those that come. */
  const start = async (retire: () => void): Promise<Held> => {
    const mark = `--tollgate-browser=${randomUUID()}`
    const browser = await chromium.launch({
      executablePath: options.executable,
      chromiumSandbox: options.isSandboxed,
      headless: true,
      proxy: NOWHERE,
      args: [...ARGUMENTS, mark],
      timeout: START_MS,
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
      // nothing of our environment, but what the program needs to be found and to have a place of its own
      env: { PATH: '/usr/bin:/bin', HOME: '/tmp', TMPDIR: '/tmp' },
    })
    const own: Held = { browser, pid: findProcess(mark), pages: 0, busy: 0, ended: undefined, retire, end }
    const watch = setInterval(() => {
      if (own.pid !== undefined && treeBytes(own.pid) > options.memoryBytes) end('memory')
    }, WATCH_EVERY_MS)
    function end(why: BrowserEnd): void {
      if (own.ended) return
      own.ended = why
      clearInterval(watch)
      held.delete(own)
      retire()
      options.onEnd(why)
      if (why !== 'closed' && why !== 'worn') options.log.warn({ why }, 'a browser was ended')
      void stop(own)
    }
    browser.once('disconnected', () => end('crash'))
    held.add(own)
    return own
  }
  const ready = (): Promise<Held> => {
    if (current) return current
    const retire = () => {
      if (current === next) current = undefined
    }
    const next = start(retire)
    current = next
    next.catch(retire)
    return next
  }

  return {
    async take() {
      const own = await ready()
      own.pages++
      own.busy++
      if (own.pages >= options.pagesPerBrowser) own.retire() // it ends once its pages have
      let given = false
      return {
        browser: own.browser,
        get ended() {
          return own.ended
        },
        kill: own.end,
        giveBack() {
          if (given) return
          given = true
          own.busy--
          if (own.busy === 0 && own.pages >= options.pagesPerBrowser) own.end('worn')
        },
      }
    },
    async close() {
      await current?.catch(() => {}) // a start that failed left nothing to close
      const open = [...held]
      for (const own of open) own.end('closed')
      await Promise.all(open.map(stop))
    },
  }
}

/** Asks it to close, and kills it when it does not. */
async function stop({ browser, pid, ended }: Held): Promise<void> {
  const kill = () => {
    if (pid === undefined) return
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it is gone
    }
  }
  if (ended === 'memory' || ended === 'stuck') return kill()
  const timer = setTimeout(kill, CLOSE_MS)
  await browser.close().catch(() => {}) // it may have crashed
  clearTimeout(timer)
}
