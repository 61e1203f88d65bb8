import { memoryBus } from '@tollgate/bus'
import { type FetchFailure, fetchRendered, renderPage } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { startFetchWorker } from '../src/index.ts'
import { tenancy } from './world.ts'

describe('WM-07 a rendered page is read like any other', () => {
  const log = openLog({ service: 'fetch-worker', level: 'error' })
  const bus = memoryBus({ log })
  let end = async () => {}
  /** What the render-worker is asked for, and what it answers by path. */
  const asked: unknown[] = []

  beforeAll(async () => {
    const worker = await startFetchWorker({ bus, log, settings: { slots: 2, threads: 1, rendered: true } })
    await bus.serve(renderPage, async (input): Promise<z.input<(typeof renderPage)['output']>> => {
      asked.push(input)
      const failure = /\/fails\/(\w+)$/.exec(input.url)?.[1]
      if (failure) return { status: 'failed', failure: failure as FetchFailure, label: 'builtin:builtin_fetch' }
      const text = 'Text that a script made, with enough words to be a paragraph. '.repeat(20)
      const html = `<!doctype html><html lang=en><head><title>Made</title></head><body><article><h1>Made</h1><p>${text}</p><p><a href="/next">on</a></p></article></body></html>`
      return { status: 'ok', finalUrl: `${input.url}end`, httpStatus: 200, html, isCut: false, bytes: 1234 }
    })
    end = async () => {
      await bus.drain(Date.now())
      await worker.close(Date.now())
    }
  }, 60_000)
  afterAll(() => end())

  const fetch = (url: string, input: object = {}) =>
    bus.call(fetchRendered, { tenancy, url, ...input }, { deadline: Date.now() + 30_000 })

  test('as Markdown, with its links, title and the bytes it took', async () => {
    const policy = { blockedDomains: ['bad.test'] }
    const page = await fetch('http://site.test/', { policy, timeoutMs: 7_000 })
    expect(page).toMatchObject({
      status: 'ok',
      requestedUrl: 'http://site.test/',
      finalUrl: 'http://site.test/end',
      title: 'Made',
      format: 'markdown',
      contentType: 'text/html',
      bytes: 1234,
      likelyJsRendered: false,
    })
    expect(page.status === 'ok' && page.text).toContain('Text that a script made')
    expect(asked.at(-1)).toMatchObject({ url: 'http://site.test/', policy, timeoutMs: 7_000 })
  })

  test('in windows', async () => {
    const page = await fetch('http://site.test/', { window: { offset: 5, maxChars: 10 } })
    expect(page).toMatchObject({ status: 'ok', offset: 5, nextOffset: 15 })
    expect(page.status === 'ok' && page.text).toHaveLength(10)
  })

  test.each(['url_disallowed', 'timeout', 'too_large'])('a page that could not be shown: %s', async (failure) => {
    expect(await fetch(`http://site.test/fails/${failure}`)).toMatchObject({ status: 'failed', failure })
  })
})
