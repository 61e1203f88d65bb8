import type { Bus } from '@tollgate/bus'
import { type fetchRendered, type RenderedPage, renderPage } from '@tollgate/contracts'
import type { ResponseHead } from '@tollgate/http'
import type { z } from 'zod'
import type { ExtractPool } from './extract/pool.ts'
import { extractPage, type PageRequest, type PageResult } from './fetch.ts'
import { handOver } from './hand-over.ts'
import { PAGED_TEXT_BYTES } from './pages.ts'

type Input = z.output<typeof fetchRendered.input>
type Event = z.input<NonNullable<(typeof fetchRendered)['event']>>

/** What a browser takes beyond the page's own time: to be started, and to be freed. */
const SLACK_MS = 10_000
const HTML = 'text/html; charset=utf-8'

/** A page as a render-worker's browser shows it, read like one that was downloaded. */
export async function readRendered(
  input: Input,
  { bus, pool }: { bus: Bus; pool: ExtractPool },
  signal: AbortSignal,
  emit: (event: Event) => void,
): Promise<PageResult> {
  emit({ type: 'rendering' })
  const { tenancy, url, policy, rules, timeoutMs, allowPrivateHosts } = input
  const rendered = await bus.call(
    renderPage,
    { tenancy, url, policy, rules, timeoutMs, allowPrivateHosts },
    { deadline: Date.now() + timeoutMs + SLACK_MS, signal },
  )
  if (rendered.status === 'failed') return rendered
  emit({ type: 'extracting' })
  const body = { bytes: new TextEncoder().encode(rendered.html), truncated: rendered.isCut }
  const answer = { head: headOf(rendered), body, maxBytes: body.bytes.length }
  const page = await extractPage(requestOf(input), pool, answer, signal)
  // what the page took from the network, not what was made of it
  return handOver(page.status === 'ok' ? { ...page, bytes: rendered.bytes } : page, input)
}

const headOf = ({ finalUrl, httpStatus }: Extract<RenderedPage, { status: 'ok' }>): ResponseHead => ({
  status: httpStatus,
  url: new URL(finalUrl),
  header: (name) => (name === 'content-type' ? HTML : undefined),
})

const requestOf = (input: Input): PageRequest => ({
  ...input,
  reads: 'documents',
  anyStatus: false,
  pdfPage: 1,
  textBytes: input.window ? PAGED_TEXT_BYTES : undefined,
})
