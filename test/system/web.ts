import type { IncomingMessage, ServerResponse } from 'node:http'
import { type FakeSite, openSite } from '@tollgate/testing'

/** The web behind an operator's forward proxy, which is what its requests have absolute targets for. */
export interface Web extends FakeSite {
  /** Makes a page come later; it never comes while this returns undefined. */
  delayMs: (target: string) => number | undefined
  /** Pages whose reader left before they were whole. */
  left(): number
}

export async function openWeb(): Promise<Web> {
  let left = 0
  const site = await openSite(
    (request, response) => {
      response.once('close', () => {
        if (!response.writableFinished) left += 1
      })
      servePage(request, response, web)
    },
    { isProxy: true },
  )
  const web: Web = Object.assign(site, { delayMs: (): number | undefined => 0, left: () => left })
  return web
}

export const pageText = (tag: string): string => `The page about ${tag} says that its secret word is walnut-${tag}.`

function servePage({ url = '' }: IncomingMessage, response: ServerResponse, { delayMs }: Web): void {
  const tag = new URL(url).pathname.split('/').at(-1) ?? ''
  const html = `<!doctype html><html><head><title>${tag}</title></head><body><article><h1>${tag}</h1><p>${pageText(tag)}</p></article></body></html>`
  const answer = () => response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html)
  const delay = delayMs(url)
  if (delay !== undefined) setTimeout(answer, delay)
}
