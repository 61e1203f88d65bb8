import type { ReceivedSpan } from '@tollgate/testing'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { ask } from './client.ts'
import { canaries } from './outside.ts'
import { allTools, sumOf, threeTools } from './scripted-jobs.ts'
import type { System } from './system.ts'

const root = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const tag = 'traced-walnut'

/** A span is of the trace, or, as a batch of records from several, points to it. */
const touches = ({ traceId, linkedTraceIds }: ReceivedSpan) => [traceId, ...linkedTraceIds].includes(root.traceId)

/** One request, as a tracing backend and the world outside see it. */
export function oneTrace(use: () => System): void {
  describe('BR-122 a request with a traceparent', () => {
    let spans: ReceivedSpan[]
    const byId = () => new Map(spans.map((span) => [span.spanId, span]))
    const names = () => new Set(spans.map(({ name }) => name))

    beforeAll(async () => {
      const { deployment, otlp, key } = use()
      const answer = await ask(deployment, 'POST', '/v1/chat/completions', {
        key,
        body: {
          model: 'openai:gpt-5',
          messages: [{ role: 'user', content: threeTools(tag) }],
          tools: allTools,
          stream: true,
        },
        headers: { traceparent: `00-${root.traceId}-${root.spanId}-01`, tracestate: 'vendor=canary-of-tracestate' },
      })
      expect(answer.status).toBe(200)
      const last = [
        'POST /v1/chat/completions',
        'consume tg.v1.usage.settled',
        'serve tg.v1.fetch.page',
        'serve tg.v1.sandbox.close',
        'search searxng',
      ]
      const missing = () => last.filter((name) => !otlp.spans.some((span) => span.name === name && touches(span)))
      await vi.waitFor(() => expect(missing()).toEqual([]), { timeout: 30_000, interval: 100 })
      spans = otlp.spans.filter(({ traceId }) => traceId === root.traceId)
    }, 60_000)

    test('is one trace over every service, under the span of whoever asked', () => {
      const known = byId()
      const outermost = spans.filter(({ parentSpanId }) => !known.has(parentSpanId ?? ''))
      expect(outermost.map(({ name, kind, parentSpanId }) => ({ name, kind, parentSpanId }))).toEqual([
        { name: 'POST /v1/chat/completions', kind: 2, parentSpanId: root.spanId },
      ])
      for (const name of [
        'round',
        'chat openai',
        'search searxng',
        'sandbox exec',
        'GET',
        'record tg.v1.usage.settled',
      ])
        expect(names()).toContain(name)
      expect([...new Set(spans.map(({ service }) => service))].toSorted()).toEqual(
        use().deployment.kind === 'standalone'
          ? ['tollgate']
          : ['billing', 'fetch-worker', 'gateway', 'sandbox-broker', 'search-broker'],
      )
    })

    test.each(['billing.reserve', 'search.query', 'fetch.page', 'sandbox.open', 'sandbox.exec', 'sandbox.close'])(
      'shows %s where it is served as a child of where it is called',
      (subject) => {
        const served = spans.filter(({ name }) => name === `serve tg.v1.${subject}`)
        expect(served.length).toBeGreaterThan(0)
        for (const { parentSpanId } of served)
          expect(byId().get(parentSpanId ?? '')?.name).toBe(`call tg.v1.${subject}`)
      },
    )

    test('shows each tool once', () => {
      const tools = spans.flatMap(({ name }) => (name.startsWith('tool ') ? name : []))
      expect(tools.toSorted()).toEqual(['tool code_execution', 'tool web_fetch', 'tool web_search'])
    })

    test('leaves no key, path, query, program or page in any span', () => {
      const { key, deployment, otlp } = use()
      const secrets = [
        ...[key, deployment.masterKey, ...Object.values(canaries)],
        ...[tag, 'news of', 'print(sum', '/page/', 'in-query', '/hit', 'secret word', String(sumOf(tag))],
      ]
      const texts = otlp.spans.map(({ text }) => text)
      for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([])
    })

    test('takes its trace to no site, search engine or model provider', () => {
      const { web, search, openai, anthropic } = use().outside
      const sent = [...web.requests, ...search.requests, ...openai.requests, ...anthropic.requests]
      expect(sent.length).toBeGreaterThan(6)
      const leaked = sent.filter(({ headers }) => headers.traceparent ?? headers.tracestate ?? headers.baggage)
      expect(leaked).toEqual([])
    })
  })
}
