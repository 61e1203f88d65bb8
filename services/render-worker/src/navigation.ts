import type { Page, Request } from 'playwright-core'

/** What became of the page's own document, and how much it still asks for. To be opened before the page goes anywhere. */
export interface Navigation {
  /** URLs of the last chain of redirects, the one that answered or failed last. */
  chain(): string[]
  /** Status of the last answer. */
  status(): number | undefined
  hasCrashed(): boolean
  /** Resolves when the page crashes: what is asked of it from then on is never answered. */
  crash: Promise<void>
  /** Waits until nothing was asked for for a while, and no longer than `until` (epoch milliseconds). */
  quiet(quietMs: number, until: number): Promise<void>
}

export function watchNavigation(page: Page): Navigation {
  const open = new Set<Request>()
  let last: Request | undefined
  let status: number | undefined
  let crashed = false
  let lastChange = Date.now()
  let wake = () => {}

  const isOwn = (request: Request): boolean => request.isNavigationRequest() && request.frame() === page.mainFrame()
  const changed = () => {
    lastChange = Date.now()
  }
  page.on('request', (request) => {
    open.add(request)
    changed()
    if (!isOwn(request)) return
    last = request
    status = undefined
  })
  page.on('response', (response) => {
    if (isOwn(response.request())) status = response.status()
  })
  const ended = (request: Request) => {
    open.delete(request)
    changed()
  }
  page.on('requestfinished', ended).on('requestfailed', ended)
  const crash = new Promise<void>((resolve) => {
    page.on('crash', () => {
      crashed = true
      wake()
      resolve()
    })
  })
  page.on('close', () => wake())

  return {
    chain() {
      const urls: string[] = []
      for (let request: Request | null = last ?? null; request; request = request.redirectedFrom())
        urls.unshift(request.url())
      return urls
    },
    status: () => status,
    hasCrashed: () => crashed,
    crash,
    quiet(quietMs, until) {
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout | undefined
        const done = () => {
          clearTimeout(timer)
          resolve()
        }
        const look = () => {
          const since = Date.now() - lastChange
          const left = until - Date.now()
          if (left <= 0 || (open.size === 0 && since >= quietMs)) return done()
          timer = setTimeout(look, Math.max(1, Math.min(left, open.size > 0 ? quietMs : quietMs - since)))
        }
        wake = done
        look()
      })
    },
  }
}
