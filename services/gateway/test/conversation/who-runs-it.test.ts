import { Fault } from '@tollgate/contracts'
import { callsTools, fakeMcpServer, says } from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { hit, legacySearch } from '../brokers.ts'
import { chatFunction } from '../turns.ts'
import { declared, openRig, providersFor, type Way, ways, wireOf } from './who-runs-rig.ts'

let rig: Awaited<ReturnType<typeof openRig>>
beforeAll(async () => {
  rig = await openRig()
}, 60_000)
afterAll(() => rig.close())
beforeEach(async () => {
  await rig.policy('code-execution-policy')
  await rig.policy('web-search')
  rig.deploy()
})

const runsCode = () => callsTools([{ name: 'code_execution', input: { code: '1' } }])
const searches = (...queries: string[]) =>
  callsTools(queries.map((query) => ({ name: 'web_search', input: { query } })))
const fetches = (url = 'https://site.test/a') => callsTools([{ name: 'web_fetch', input: { url } }])
const done = says('Done.')
const broken = { status: 500, body: '{}' }
const tally = () => rig.brokers.settled.flatMap(({ lines }) => lines.map(({ tool, outcome }) => [tool, outcome]))
/** Types of what an answer holds beside its text. */
function nativeBlocks(answer: object): unknown[] {
  const { content, output } = answer as Record<string, { type: string }[] | undefined>
  const parts = output ?? (Array.isArray(content) ? content : [])
  return parts.map(({ type }) => type).filter((type) => type !== 'text' && type !== 'message')
}

/** Codes that its own vendor runs where it is asked in its own dialect, as the requirements have it. */
const NATIVE = ['messages claude code_execution_20250825', 'responses openai code_interpreter']
const codeForms = ['code_execution_20250825', 'code_execution', 'code_interpreter']

describe('a provider’s code tool', () => {
  const casesOf = (way: Way) =>
    providersFor(way).flatMap((provider) =>
      codeForms.flatMap((form) => [' auto ', 'OTARI', 'Provider'].map((executor) => ({ provider, form, executor }))),
    )
  test.each(ways)(
    'T-17 X-01 X-02 X-03 X-04 runs where the executor says, every form with every provider: $dialect, streamed $streamed',
    async (way) => {
      for (const { provider, form, executor } of casesOf(way)) {
        const native = NATIVE.includes(`${way.dialect} ${provider} ${form}`)
        const here = executor === 'OTARI' || (executor === ' auto ' && !native)
        const entry = declared(form, way.dialect, form === 'code_interpreter' ? { container: { type: 'auto' } } : {})
        const sayIt = { ...way, provider, form, executor }
        rig.play(...(here ? [runsCode(), done] : [done]))
        const headers = { 'otari-code-execution': executor }
        const heard = await rig.ask(provider, way, [entry], { headers }).then(
          ({ text }) => text,
          ({ status }) => status,
        )
        const ran = [rig.brokers.asked.opened.length, rig.brokers.asked.exec.length]
        const upstream = { requests: rig.sent(provider).length, tools: rig.offered(provider) }
        if (here) {
          const expected = { heard: 'Done.', ran: [1, 1], upstream: { requests: 2, tools: ['code_execution'] } }
          expect({ ...sayIt, heard, ran, upstream }).toEqual({ ...sayIt, ...expected })
        } else if (way.dialect === wireOf[provider]) {
          // whether it knows the tool is the provider's to say
          const expected = { ran: [0, 0], upstream: { requests: 1, tools: [entry] } }
          expect({ ...sayIt, ran, upstream }).toEqual({ ...sayIt, ...expected })
          if (native) expect(heard).toBe('Done.')
        } else {
          const expected = { heard: 400, ran: [0, 0], upstream: { requests: 0, tools: [] } }
          expect({ ...sayIt, heard, ran, upstream }).toEqual({ ...sayIt, ...expected })
        }
      }
    },
  )

  test.each(ways)(
    'X-11 T-14 our own type runs here whatever header, setting and pin say: $dialect, streamed $streamed',
    async (way) => {
      rig.deploy({ codeExecutionExecutor: 'provider' })
      for (const pin of [null, 'provider'])
        for (const provider of providersFor(way)) {
          await rig.policy('code-execution-policy', { enabled: true, executor: pin })
          rig.play(runsCode(), done)
          const headers = { 'otari-code-execution': 'provider' }
          const { text } = await rig.ask(provider, way, [{ type: 'otari_code_execution' }], { headers })
          expect([text, rig.offered(provider)]).toEqual(['Done.', ['code_execution']])
          expect([rig.brokers.asked.opened.length, rig.brokers.asked.exec.length]).toEqual([1, 1])
        }
    },
  )

  test.each(ways)(
    'X-12 claimed beside our own is one function in one sandbox, shown in the vendor’s words: $dialect, streamed $streamed',
    async (way) => {
      const keyword = way.dialect === 'responses' ? 'code_interpreter' : 'code_execution_20250825'
      const tools = [{ type: 'otari_code_execution' }, declared(keyword, way.dialect)]
      for (const order of [tools, tools.toReversed()]) {
        rig.play(runsCode(), runsCode(), done)
        const { text, raw } = await rig.ask('other', way, order)
        expect(text).toBe('Done.')
        expect(rig.offered('other')).toEqual(['code_execution'])
        expect([rig.brokers.asked.opened.length, rig.brokers.asked.exec.length]).toEqual([1, 2])
        const pair = ['server_tool_use', 'code_execution_tool_result']
        const shown = { chat: [], messages: [...pair, ...pair], responses: Array(2).fill('code_interpreter_call') }
        expect(nativeBlocks(raw)).toEqual(shown[way.dialect])
      }
    },
  )

  test.each(['gpt', 'other'] as const)(
    'X-23 of a Chat client runs here, and nothing but the answer is returned: %s',
    async (provider) => {
      const shapeOf = (text: string) => {
        const parsed = text
          .split('\n\n')
          .flatMap((frame) => (/^data: \{/.test(frame) ? [JSON.parse(frame.slice(6))] : []))
        const whole = parsed.length > 0 ? parsed : [JSON.parse(text)]
        return [
          ...new Set(whole.flatMap((part) => [...Object.keys(part), ...Object.keys(part.choices[0]?.message ?? {})])),
        ]
      }
      for (const stream of [false, true]) {
        const post = async (type: string) =>
          (await rig.post(provider, { dialect: 'chat', streamed: stream }, [{ type }])).text
        // rounds of its own make the gateway write the answer itself
        rig.play(done)
        const plain = shapeOf(await post('otari_code_execution'))
        rig.play(runsCode(), done)
        const ran = await post('code_execution')
        expect(rig.brokers.asked.exec).toHaveLength(1)
        expect(shapeOf(ran).toSorted()).toEqual(plain.toSorted())
        expect(ran).not.toMatch(/otari_|extra_content|tool_calls":\[/)
      }
    },
  )

  test.each(ways)(
    'X-32 runs here where no executor is set, and is billed; set to provider it is forwarded: $dialect, streamed $streamed',
    async (way) => {
      for (const form of codeForms) {
        rig.play(runsCode(), done)
        await rig.ask('other', way, [declared(form, way.dialect)])
        expect(rig.brokers.asked.exec).toHaveLength(1)
        expect(rig.brokers.settled).toMatchObject([{ lines: [{ tool: 'code_execution', outcome: 'ok' }] }])
      }
      rig.deploy({ codeExecutionExecutor: 'provider' })
      for (const form of codeForms) {
        rig.play(done)
        const entry = declared(form, way.dialect)
        await rig.ask(way.dialect === 'messages' ? 'clone' : 'other', way, [entry]).catch(() => {})
        expect(rig.brokers.asked.opened).toEqual([])
        if (way.dialect === 'messages') expect(rig.offered('clone')).toEqual([entry])
        if (way.dialect === 'chat') expect(rig.offered('other')).toEqual([entry])
        expect(tally()).toEqual([])
      }
    },
  )

  test.each(ways)('X-33 is policed, priced and tallied as our own type: $dialect, streamed $streamed', async (way) => {
    const seen: unknown[] = []
    for (const type of ['otari_code_execution', 'code_execution_20250825']) {
      const tools = [declared(type, way.dialect)]
      rig.deploy({ sandboxAllowedSessionImages: ['py'] })
      await rig.policy('code-execution-policy', { enabled: true, exec_timeout_s: 7, image: 'py', max_iterations: 4 })
      rig.play(runsCode(), runsCode(), done)
      rig.brokers.exec = async () => ({
        status: 'ok',
        stdout: '',
        stderr: '',
        returnCode: rig.brokers.asked.exec.length - 1,
        files: [],
      })
      await rig.ask('other', way, tools)
      const { asked, settled } = rig.brokers
      const lines = settled[0]?.lines.map(({ tool, label, outcome, priceKeys }) => ({
        tool,
        label,
        outcome,
        priceKeys,
      }))
      const { image } = asked.opened[0] ?? {}
      const held = asked.reserved[0]?.tools
      expect([lines?.map(({ outcome }) => outcome), image]).toEqual([['ok', 'error'], 'py'])
      const timeouts = asked.exec.map(({ timeoutSeconds }) => timeoutSeconds)
      rig.play()
      rig.brokers.reserve = async () => {
        throw new Fault('pricing_required', "The gateway tool 'code_execution' has no pricing")
      }
      const unpriced = await rig.refusal('other', way, tools)
      await rig.policy('code-execution-policy', { enabled: false })
      const off = await rig.refusal('other', way, tools)
      expect([unpriced[0], off[0], rig.sent('other')]).toEqual([402, 403, []])
      seen.push({ lines, image, held, timeouts, unpriced, off })
    }
    expect(seen[1]).toEqual(seen[0])
  })

  test.each(ways)(
    'W-07 without a policy the deployment’s default decides: $dialect, streamed $streamed',
    async (way) => {
      const tools = [{ type: 'otari_code_execution' }]
      await rig.policy('code-execution-policy', { enabled: false })
      rig.play()
      const stored = await rig.refusal('other', way, tools)
      await rig.policy('code-execution-policy')
      rig.deploy({ codeExecutionWorkspaceDefault: false })
      expect(await rig.refusal('other', way, tools)).toEqual(stored)
      expect(stored).toEqual([403, expect.stringContaining('code execution is not enabled for this workspace')])
      expect(rig.sent('other')).toEqual([])
      for (const enable of [
        () => rig.policy('code-execution-policy', { enabled: true }),
        async () => rig.deploy({ codeExecutionWorkspaceDefault: true }),
      ]) {
        await enable()
        rig.play(runsCode(), done)
        expect((await rig.ask('other', way, tools)).text).toBe('Done.')
        expect(rig.brokers.asked.exec).toHaveLength(1)
        await rig.policy('code-execution-policy')
      }
    },
  )
})

test.each(ways.filter(({ dialect }) => dialect === 'messages'))(
  'X-25 a beta and what configures it go no further than Messages, and refuse nothing: streamed $streamed',
  async (way) => {
    const headers = { 'anthropic-beta': 'context-management-2025-06-27' }
    const edits = [{ type: 'clear_tool_uses_20250919' }]
    const extra = { context_management: { edits } }
    for (const tools of [[], [{ type: 'otari_web_search' }]])
      for (const provider of providersFor(way)) {
        rig.play(done)
        const { text } = await rig.ask(provider, way, tools, { headers, extra })
        const [request] = rig.fakes[provider].requests
        const passed = [request?.headers['anthropic-beta'], request?.body.context_management]
        const whole = [headers['anthropic-beta'], { edits }]
        expect([text, passed]).toEqual(['Done.', provider === 'claude' ? whole : [undefined, undefined]])
      }
    // whichever model a chain ends at
    rig.play(broken, done)
    expect((await rig.ask('back', way, [{ type: 'otari_web_search' }], { headers, extra })).text).toBe('Done.')
    expect(rig.fakes.other.requests[0]?.body).not.toHaveProperty('context_management')
  },
)

const dated = 'web_search_20250305'
const searchForms = ['web_search', dated, 'web_search_preview']

describe('a provider’s search', () => {
  test.each([false, true])('S-01 T-15 is forwarded as it came by default: streamed %s', async (streamed) => {
    for (const [provider, form] of [
      ['claude', dated],
      ['openai', 'web_search'],
      ['openai', 'web_search_preview'],
    ] as const) {
      const dialect = wireOf[provider]
      const entry = declared(form, dialect, { user_location: { type: 'approximate', country: 'NO' } })
      rig.play(done)
      await rig.ask(provider, { dialect, streamed }, [entry])
      expect(rig.offered(provider)).toEqual([entry])
      expect([rig.brokers.asked.search, tally()]).toEqual([[], []])
    }
  })

  test.each(ways)('S-02 runs here where searches are intercepted: $dialect, streamed $streamed', async (way) => {
    rig.deploy({ webSearchIntercept: true })
    for (const provider of providersFor(way))
      for (const form of searchForms) {
        rig.play(searches(`of ${form}`), done)
        const { text } = await rig.ask(provider, way, [declared(form, way.dialect)])
        expect([text, rig.offered(provider)]).toEqual(['Done.', ['web_search']])
        expect(rig.brokers.asked.search.map(({ query }) => query)).toEqual([`of ${form}`])
      }
    // on every attempt
    rig.play(broken, searches('again'), done)
    await rig.ask('back', way, [declared(dated, way.dialect)])
    expect([rig.offered('claude'), rig.offered('other')]).toEqual([['web_search'], ['web_search']])
    expect(rig.brokers.asked.search.map(({ query }) => query)).toEqual(['again'])
  })

  test.each([false, true])(
    'S-06 whose model answers with its own is not searched for here, nor billed: streamed %s',
    async (streamed) => {
      for (const model of ['claude', 'back']) {
        rig.play(done)
        const way: Way = { dialect: 'messages', streamed }
        const headers = { 'otari-web-search': 'auto' }
        expect((await rig.ask(model, way, [declared(dated, 'messages')], { headers })).text).toBe('Done.')
        expect([rig.brokers.asked.search, rig.sent('other')]).toEqual([[], []])
        expect(rig.brokers.settled).toMatchObject([{ status: 'success', lines: [] }])
      }
    },
  )

  test.each([false, true])(
    'S-07 S-08 R-32 claimed from Anthropic is shown in its words, and not counted as its own: streamed %s',
    async (streamed) => {
      for (const reported of [undefined, { web_search_requests: 0, web_fetch_requests: 0 }]) {
        const usage = { input_tokens: 5, output_tokens: 5, ...(reported && { server_tool_use: reported }) }
        rig.play({ ...searches('red'), usage }, { ...done, usage })
        const headers = { 'otari-web-search': 'otari' }
        const way: Way = { dialect: 'messages', streamed }
        const { raw } = await rig.ask('claude', way, [declared(dated, 'messages')], { headers })
        expect(rig.offered('claude')).toEqual(['web_search'])
        expect(rig.brokers.asked.search.map(({ query }) => query)).toEqual(['red'])
        expect(nativeBlocks(raw)).toEqual(['server_tool_use', 'web_search_tool_result'])
        const { usage: told } = raw as { usage: { server_tool_use?: unknown } }
        expect(told.server_tool_use ?? undefined).toEqual(reported)
      }
    },
  )

  test.each([false, true])(
    'S-11 T-07 stays with the provider where the deployment has no search, whoever asks for it: streamed %s',
    async (streamed) => {
      for (const more of [{ webSearchIntercept: true }, {}])
        for (const header of ['otari', 'auto']) {
          rig.deploy({ search: false, ...more })
          await rig.policy('web-search', { enabled: true })
          const { body } = await rig.gateway.send<{ data: { id: string; available: boolean }[] }>(
            'GET',
            '/api/v1/tools',
            {
              key: rig.gateway.firstKey,
            },
          )
          expect(body.data.find(({ id }) => id === 'otari_web_search')?.available).toBe(false)
          const entry = declared(dated, 'messages')
          rig.play(done)
          const headers = { 'otari-web-search': header }
          await rig.ask('claude', { dialect: 'messages', streamed }, [entry], { headers })
          expect([rig.offered('claude'), rig.brokers.asked.search]).toEqual([[entry], []])
        }
    },
  )

  test.each(ways)('S-12 T-19 is no function of that name: $dialect, streamed $streamed', async (way) => {
    rig.deploy({ webSearchIntercept: true, codeExecutionExecutor: 'otari' })
    const headers = { 'otari-web-search': 'otari', 'otari-web-fetch': 'otari', 'otari-code-execution': 'otari' }
    for (const name of ['web_search', 'web_fetch', 'code_execution']) {
      const { function: described } = chatFunction(name) as { function: { parameters: object } }
      const tool = {
        chat: chatFunction(name),
        messages: { name, input_schema: described.parameters },
        responses: { type: 'function', ...described, strict: false },
      }[way.dialect]
      for (const provider of providersFor(way)) {
        rig.play(callsTools([{ name, input: { query: 'red' }, id: 'call_1' }]))
        const { calls } = await rig.ask(provider, way, [tool], { headers })
        expect(calls).toMatchObject([{ name, input: { query: 'red' } }])
        const { search, fetch, opened } = rig.brokers.asked
        expect([search, fetch, opened]).toEqual([[], [], []])
      }
    }
  })

  test.each(ways)(
    'S-14 claimed is policed, priced and bounded as our own: $dialect, streamed $streamed',
    async (way) => {
      const headers = { 'otari-web-search': 'otari' }
      const seen: unknown[] = []
      for (const type of ['otari_web_search', dated]) {
        const ask = (more: object = {}) => rig.ask('other', way, [declared(type, way.dialect, more)], { headers })
        rig.deploy({ webSearchMaxCalls: 2 })
        await rig.policy('web-search', { enabled: true, max_results: 3, blocked_domains: ['evil.test'] })
        rig.play(searches('one'), searches('two', 'three'), done)
        await ask()
        const asked = rig.brokers.asked.search.map(({ tenancy: _, ...search }) => search)
        expect(asked).toMatchObject([
          { query: 'one', maxResults: 3, policy: { blockedDomains: ['evil.test'] } },
          { query: 'two' },
        ])
        expect(rig.sent('other')[2]).toContain('[tool error] web search call limit reached for this request')
        const lines = rig.brokers.settled[0]?.lines.map(({ tool, label, outcome, priceKeys }) => [
          tool,
          label,
          outcome,
          priceKeys,
        ])
        const held = rig.brokers.asked.reserved[0]?.tools
        rig.play(searches('one', 'two'), done)
        await ask({ max_uses: 1 })
        expect([rig.brokers.asked.search.length, tally().map(([, outcome]) => outcome)]).toEqual([1, ['ok', 'error']])
        rig.play()
        rig.brokers.reserve = async () => {
          throw new Fault('pricing_required', "The gateway tool 'web_search' has no pricing")
        }
        const tools = [declared(type, way.dialect)]
        const unpriced = await rig.refusal('other', way, tools, { headers })
        await rig.policy('web-search', { enabled: false })
        const off = await rig.refusal('other', way, tools, { headers })
        expect([unpriced[0], off[0], rig.sent('other')]).toEqual([402, 403, []])
        seen.push({ asked, lines, held, unpriced, off })
      }
      expect(seen[1]).toEqual(seen[0])
    },
  )

  test.each(ways)(
    'S-20 S-21 past max_uses is refused in words the model reads, and shown as Anthropic shows it: $dialect, streamed $streamed',
    async (way) => {
      const headers = { 'otari-web-search': 'otari' }
      rig.play(searches('one'), searches('two'), searches('three'), done)
      const { text, raw } = await rig.ask('other', way, [declared(dated, way.dialect, { max_uses: 1 })], { headers })
      expect(text).toBe('Done.')
      expect(rig.brokers.asked.search.map(({ query }) => query)).toEqual(['one'])
      const results = rig.resultsIn('other', 3)
      expect(results.slice(1)).toEqual(['[tool error] max_uses_exceeded', '[tool error] max_uses_exceeded'])
      expect(results[0]).toContain('https://site.test/1')
      if (way.dialect === 'messages') {
        const { content } = raw as { content: { type: string; content: { error_code?: string } }[] }
        const found = content.filter(({ type }) => type === 'web_search_tool_result').map((block) => block.content)
        const error = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }
        expect(found).toEqual([expect.any(Array), error, error])
      }
    },
  )

  test.each(ways)(
    'S-39 on the older backend that nobody answers at is an error the model reads: $dialect, streamed $streamed',
    async (way) => {
      rig.play(searches('one'), done)
      rig.brokers.inLoop = legacySearch
      rig.brokers.search = async () => ({ status: 'failed', label: 'otari:web_search', tag: 'network' })
      expect((await rig.ask('other', way, [{ type: 'otari_web_search' }])).text).toBe('Done.')
      expect(rig.sent('other')[1]).toContain('[tool error] search failed (network)')
    },
  )

  test('S-61 reads its pages at no cost to the calls that a request may make', async () => {
    rig.play(...Array.from({ length: 10 }, (_, n) => searches(`q${n}`)), done)
    rig.brokers.search = async () => ({
      status: 'ok',
      label: 'exa:main',
      hits: Array.from({ length: 20 }, (_, n) => ({ ...hit(n), text: `page ${n}` })),
    })
    await rig.ask(
      'other',
      { dialect: 'chat', streamed: false },
      [{ type: 'otari_web_search' }, { type: 'otari_web_fetch' }],
      {
        extra: { max_tool_iterations: 12 },
      },
    )
    expect(rig.brokers.asked.search).toHaveLength(10)
    expect(tally()).toEqual(Array(10).fill(['web_search', 'ok']))
  })
})

const page = 'web_fetch_20250910'

describe('a provider’s fetch', () => {
  const messages = (streamed: boolean): Way => ({ dialect: 'messages', streamed })

  test.each([false, true])(
    'F-01 F-07 T-16 is forwarded by default, intercepted searches or not: streamed %s',
    async (streamed) => {
      for (const webSearchIntercept of [false, true]) {
        rig.deploy({ webSearchIntercept })
        const entry = declared(page, 'messages', { max_content_tokens: 9, citations: { enabled: true } })
        rig.play(done)
        await rig.ask('claude', messages(streamed), [entry])
        expect([rig.offered('claude'), rig.brokers.asked.fetch]).toEqual([[entry], []])
      }
    },
  )

  test.each([false, true])('F-04 is always ours under otari, on every attempt: streamed %s', async (streamed) => {
    const headers = { 'otari-web-fetch': 'otari' }
    const entry = declared(page, 'messages')
    rig.play(fetches(), done)
    const { raw } = await rig.ask('claude', messages(streamed), [entry], { headers })
    expect([rig.offered('claude'), rig.brokers.asked.fetch.map(({ url }) => url)]).toEqual([
      ['web_fetch'],
      ['https://site.test/a'],
    ])
    expect(nativeBlocks(raw)).toEqual(['server_tool_use', 'web_fetch_tool_result'])
    rig.play(broken, fetches(), done)
    await rig.ask('back', messages(streamed), [entry], { headers })
    expect([rig.offered('claude'), rig.offered('other')]).toEqual([['web_fetch'], ['web_fetch']])
    expect(rig.brokers.asked.fetch).toHaveLength(1)
  })

  test.each([false, true])('F-05 is never ours under provider, nor the stand-in’s: streamed %s', async (streamed) => {
    const entry = declared(page, 'messages')
    const headers = { 'otari-web-fetch': 'provider' }
    rig.play(broken, { status: 400, body: '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}' })
    expect((await rig.refusal('twins', messages(streamed), [entry], { headers }))[0]).toBe(400)
    expect([rig.offered('claude'), rig.offered('clone')]).toEqual([[entry], [entry]])
    expect(rig.brokers.asked.fetch).toEqual([])
  })

  test.each([false, true])('F-06 is chosen apart from the search: streamed %s', async (streamed) => {
    const tools = [declared(dated, 'messages'), declared(page, 'messages')]
    rig.play(fetches(), done)
    const ours = { 'otari-web-search': 'provider', 'otari-web-fetch': 'otari' }
    await rig.ask('claude', messages(streamed), tools, { headers: ours })
    expect(rig.offered('claude')).toEqual([tools[0], 'web_fetch'])
    expect(rig.brokers.asked.fetch).toHaveLength(1)
    rig.play(searches('red'), done)
    const theirs = { 'otari-web-search': 'otari', 'otari-web-fetch': 'provider' }
    await rig.ask('claude', messages(streamed), tools, { headers: theirs })
    expect(rig.offered('claude')).toEqual(['web_search', tools[1]])
    expect(rig.brokers.asked.search).toHaveLength(1)
  })

  test.each([false, true])('F-08 goes out as it came where fetching is off: streamed %s', async (streamed) => {
    rig.deploy({ webFetchEnabled: false })
    const entry = declared(page, 'messages')
    for (const headers of [undefined, { 'otari-web-fetch': 'otari' }, { 'otari-web-fetch': 'auto' }]) {
      rig.play(done)
      expect((await rig.ask('claude', messages(streamed), [entry], { headers })).text).toBe('Done.')
      expect(rig.offered('claude')).toEqual([entry])
    }
  })

  test.each([false, true])('F-12 blocks of ours that are echoed reach no model: streamed %s', async (streamed) => {
    const headers = { 'otari-web-fetch': 'otari' }
    const tools = [declared(page, 'messages')]
    rig.play(fetches(), done, says('More.'))
    const user = (content: string) => ({ role: 'user', content })
    const first = await rig.ask('claude', messages(streamed), tools, { headers })
    expect(JSON.stringify(first.echo)).toContain('web_fetch_tool_result')
    const history = [user('Hello'), ...first.echo, user('And?')]
    expect((await rig.ask('claude', messages(streamed), tools, { headers, history })).text).toBe('More.')
    expect(rig.sent('claude').at(-1)).not.toMatch(/web_fetch_tool_result|server_tool_use|otari_srvtoolu/)
    expect(rig.fakes.claude.requests.at(-1)?.body.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] },
      { role: 'user' },
    ])
    expect(rig.fakes.claude.refusals).toEqual([])
  })

  test('FP-07 our own fetcher has no key, no cost and a final address, and is what a deployment has', async () => {
    rig.play(fetches('https://site.test/moved'), done)
    rig.brokers.fetch = async ({ url }) => ({
      status: 'ok',
      requestedUrl: url,
      finalUrl: 'https://site.test/here',
      contentType: 'text/html',
      text: 'Page text',
      totalChars: 9,
      bytes: 9,
      label: 'builtin:builtin_fetch',
    })
    await rig.ask('other', { dialect: 'chat', streamed: false }, [{ type: 'otari_web_fetch' }])
    expect([rig.brokers.asked.fetch.length, rig.brokers.asked.fetchBy]).toEqual([1, []])
    expect(rig.sent('other')[1]).toContain('https://site.test/here')
    const [line] = rig.brokers.settled[0]?.lines ?? []
    expect(line).toMatchObject({ label: 'builtin:builtin_fetch', outcome: 'ok' })
    expect(line).not.toHaveProperty('reportedCost')
  })
})

describe('tools in a mix', () => {
  const search = { type: 'otari_web_search' }
  const code = { type: 'otari_code_execution' }
  const OFF = 'code execution is not enabled for this workspace'

  test.each(ways)('L-02 are refused together for one that is off: $dialect, streamed $streamed', async (way) => {
    await rig.policy('code-execution-policy', { enabled: false })
    for (const model of ['other', 'back', 'forth']) {
      rig.play()
      expect(await rig.refusal(model, way, [search, code])).toEqual([403, expect.stringContaining(OFF)])
      expect([rig.sent('claude'), rig.sent('other')]).toEqual([[], []])
    }
  })

  test.each([false, true])('L-02 one that is off passes over a candidate of a chain: streamed %s', async (streamed) => {
    await rig.policy('code-execution-policy', { enabled: false })
    const tools = [search, declared('code_execution_20250825', 'messages')]
    const headers = { 'otari-code-execution': 'auto' }
    rig.play(searches('red'), done)
    const { text } = await rig.ask('forth', { dialect: 'messages', streamed }, tools, { headers })
    expect(text).toBe('Done.')
    expect([rig.sent('other'), rig.offered('claude')]).toEqual([[], ['web_search', tools[1]]])
    expect(rig.brokers.settled[0]?.absorbed).toMatchObject([{ provider: 'other', error: `Skipped: ${OFF}` }])
  })

  test.each(ways)('L-03 go on when one is at its max_uses: $dialect, streamed $streamed', async (way) => {
    const server = await fakeMcpServer()
    server.tools = [{ name: 'list_issues', run: () => '#12 is open' }]
    onTestFinished(() => server.close())
    const all = () =>
      callsTools([
        { name: 'web_search', input: { query: 'red' } },
        { name: 'code_execution', input: { code: '1' } },
        { name: 'list_issues', input: {} },
      ])
    rig.play(all(), all(), done)
    const { text } = await rig.ask('other', way, [{ ...search, max_uses: 1 }, code], {
      extra: { mcp_servers: [{ ...(way.dialect === 'messages' && { type: 'url' }), name: 'github', url: server.url }] },
    })
    expect(text).toBe('Done.')
    expect([rig.brokers.asked.search.length, rig.brokers.asked.exec.length]).toEqual([1, 2])
    const results = rig.resultsIn('other', 2)
    expect(results).toHaveLength(6)
    expect(results[3]).toBe('[tool error] max_uses_exceeded')
    expect(results.filter((result) => result.startsWith('[tool error]'))).toHaveLength(1)
    expect(results.filter((result) => result.includes('#12 is open'))).toHaveLength(2)
  })

  test.each(ways)('L-07 end in a last round where the policy says so: $dialect, streamed $streamed', async (way) => {
    await rig.policy('code-execution-policy', { enabled: true, max_iterations: 2 })
    rig.play(searches('red'), says('What I know.'))
    const { text } = await rig.ask('other', way, [search, code], { extra: { max_tool_iterations: 5 } })
    expect(text).toBe('What I know.')
    expect(rig.sent('other')).toHaveLength(2)
    expect([rig.offered('other', 0), rig.offered('other', 1)]).toEqual([['web_search', 'code_execution'], []])
    expect(rig.sent('other')[0]).not.toContain('Answer now from the results')
    expect(rig.sent('other')[1]).toContain('Answer now from the results you already have')
  })

  test.each([false, true])('L-36 run in other places from one attempt to the next: streamed %s', async (streamed) => {
    const tools = [declared('code_execution_20250825', 'messages'), declared(dated, 'messages')]
    const headers = { 'otari-code-execution': 'auto', 'otari-web-search': 'otari' }
    rig.play(broken, callsTools([{ name: 'web_search', input: { query: 'red' } }]), runsCode(), done)
    const { text, raw } = await rig.ask('back', { dialect: 'messages', streamed }, tools, { headers })
    expect(text).toBe('Done.')
    expect(rig.offered('claude')).toEqual([tools[0], 'web_search'])
    expect(rig.offered('other')).toEqual(['code_execution', 'web_search'])
    expect([rig.brokers.asked.search.length, rig.brokers.asked.exec.length]).toEqual([1, 1])
    const pairs = ['web_search', 'code_execution'].flatMap((name) => ['server_tool_use', `${name}_tool_result`])
    expect(nativeBlocks(raw)).toEqual(pairs)
    // the search was ours on the first attempt as well
    rig.play(searches('blue'), done)
    await rig.ask('back', { dialect: 'messages', streamed }, tools, { headers })
    expect([rig.brokers.asked.search.length, rig.brokers.asked.opened.length]).toEqual([1, 0])
  })
})

describe('what Chat is told of searches and pages', () => {
  interface Told {
    otari_tool_calls?: { id: string; query?: string; url?: string; sources?: { url: string }[] }[]
  }
  const tools = [{ type: 'otari_web_search' }, { type: 'otari_web_fetch' }]
  async function told(
    model: string,
    stream: boolean,
    declares: object[] = tools,
    headers: Record<string, string> = {},
  ) {
    const { text } = await rig.post(model, { dialect: 'chat', streamed: stream }, declares, { headers })
    const parts = stream
      ? text.split('\n\n').flatMap((frame) => (/^data: \{/.test(frame) ? [JSON.parse(frame.slice(6)) as Told] : []))
      : [JSON.parse(text) as Told]
    return parts.flatMap(({ otari_tool_calls: calls = [] }) => calls)
  }

  test.each([false, true])(
    'R-43 every call of every round, in their order, behind an attempt that failed: streamed %s',
    async (stream) => {
      const url = 'https://site.test/a'
      rig.play(
        broken,
        callsTools([
          { name: 'web_search', input: { query: 'one' }, id: 'call_1' },
          { name: 'web_fetch', input: { url }, id: 'call_2' },
        ]),
        callsTools([{ name: 'web_search', input: { query: 'two' }, id: 'call_3' }]),
        done,
      )
      const calls = await told('back', stream)
      expect(calls.map(({ id, query, url: of }) => [id, query ?? of])).toEqual([
        ['call_1', 'one'],
        ['call_2', url],
        ['call_3', 'two'],
      ])
    },
  )

  test.each([false, true])('S-22 a search past its max_uses is one that failed: streamed %s', async (stream) => {
    for (const type of ['otari_web_search', dated]) {
      rig.play(searches('one'), searches('two'), done)
      const calls = await told('other', stream, [{ type, max_uses: 1 }], { 'otari-web-search': 'otari' })
      const refused = { type: 'web_search', status: 'failed', query: 'two', error: { tag: 'call_limit' } }
      expect(calls).toMatchObject([{ status: 'completed', query: 'one' }, refused])
    }
  })

  test.each([false, true])(
    'R-44 sources are what the model was shown, whole for hits, without query for pages: streamed %s',
    async (stream) => {
      const at = (n: number) => `https://site.test/${n}?token=of-${n}#part`
      rig.play(
        callsTools([
          { name: 'web_search', input: { query: 'one' } },
          { name: 'web_fetch', input: { url: at(99) } },
        ]),
        done,
      )
      // more than a model is shown
      const hits = Array.from({ length: 30 }, (_, n) => ({ ...hit(n), url: at(n), text: 'long '.repeat(2_000) }))
      rig.brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits })
      const [search, fetched] = await told('other', stream)
      const shown = hits.flatMap(({ url }) => (rig.sent('other')[1]?.includes(url) ? [url] : []))
      expect(shown.length).toBeLessThan(hits.length)
      expect(search?.sources?.map(({ url }) => url)).toEqual(shown)
      expect(fetched?.url).toBe('https://site.test/99')
      expect(JSON.stringify(fetched)).not.toContain('token')
    },
  )
})

describe('the headers of a container', () => {
  test.each(ways)(
    'R-67 stand on answers and streams, and on no refusal: $dialect, streamed $streamed',
    async ({ dialect, streamed }) => {
      const id = `otari_cntr_${'0a'.repeat(16)}`
      const held = { id, expiresAt: '2026-12-01T00:10:00.000Z' }
      const post = async (container: unknown = 'auto') => {
        const tools = [{ type: 'otari_code_execution' }]
        const { status, headers } = await rig.post('other', { dialect, streamed }, tools, { extra: { container } })
        return [status, [...headers.keys()].filter((name) => name.startsWith('otari-container')).length]
      }
      const keeps = (...script: Parameters<typeof rig.play>) => {
        rig.play(...script)
        rig.brokers.open = async () => ({ session: 's', container: held })
        rig.brokers.close = async ({ discard }) => (discard ? {} : { container: held })
      }
      keeps(runsCode(), done)
      expect(await post()).toEqual([200, 2])
      keeps()
      expect(await post(7)).toEqual([400, 0])
      expect(await post('otari_cntr_1')).toEqual([400, 0])
      rig.brokers.reserve = async () => {
        throw new Fault('pricing_required', 'no price')
      }
      expect(await post()).toEqual([402, 0])
      keeps(broken)
      expect((await post())[1]).toBe(0)
      await rig.policy('code-execution-policy', { enabled: false })
      expect(await post()).toEqual([403, 0])
    },
  )
})

describe('a deployment whose brokers were never heard', () => {
  test('X-28 X-29 S-39 T-32 S-13 says so before any model is asked, lets others answer, and serves once they are', async () => {
    const late = await openRig({
      sandboxUrl: 'http://box.test',
      webSearchUrl: 'http://search.test',
      webFetchDefaultTool: 'pages',
    })
    onTestFinished(() => late.close())
    const starting = new Fault('unavailable', 'starting')
    const silence = () => Object.assign(late.brokers, { describeFails: starting, sandboxDescribeFails: starting })
    const play = (...script: Parameters<typeof late.play>) => {
      late.play(...script)
      silence()
    }
    for (const way of ways) {
      play()
      for (const [type, status, words] of [
        ['otari_code_execution', 503, 'code_execution sandbox temporarily unavailable. Retry later.'],
        ['otari_web_search', 502, 'web_search backend unreachable. Check the search URL'],
        ['otari_web_fetch', 503, 'web_fetch backend temporarily unavailable. Retry later.'],
        ['code_execution', 503, 'code_execution sandbox temporarily unavailable. Retry later.'],
      ] as const) {
        const [told, text] = await late.refusal('other', way, [declared(type, way.dialect)])
        expect({ ...way, type, told, text }).toEqual({
          ...way,
          type,
          told: status,
          text: expect.stringContaining(words),
        })
      }
      expect(late.sent('other')).toEqual([])
      expect(late.brokers.asked.reserved).toEqual([])
      play(done)
      expect((await late.post('other', way, [], { extra: { tools: undefined } })).status).toBe(200)
    }
    const [way] = ways.filter(({ dialect, streamed }) => dialect === 'messages' && !streamed) as [Way]
    const dated = declared('code_execution_20250825', 'messages')
    play(done)
    expect((await late.ask('forth', way, [dated])).text).toBe('Done.')
    expect([late.sent('other').length, late.offered('claude')]).toEqual([0, [dated]])
    await expect
      .poll(() => late.brokers.settled)
      .toMatchObject([
        { absorbed: [{ error: 'Skipped: code_execution sandbox temporarily unavailable. Retry later.' }] },
      ])

    await expect
      .poll(
        async () => {
          late.play(runsCode(), done)
          return (await late.post('other', way, [{ type: 'otari_code_execution' }])).status
        },
        { timeout: 10_000 },
      )
      .toBe(200)
    expect(late.brokers.asked.exec).toHaveLength(1)
  })
})

describe('money that cannot be set aside', () => {
  test.each(ways)(
    'BR-140 T-32 no model is called and no sandbox leased, whatever keeps the hold from being written: $dialect, streamed $streamed',
    async (way) => {
      for (const [failure, status] of [
        ['unavailable', 503],
        ['timeout', 504],
        ['internal', 500],
      ] as const) {
        rig.play(done)
        rig.brokers.reserve = async () => {
          throw new Fault(failure, 'the ledger’s own words')
        }
        const answered = await rig.post('other', way, [{ type: 'otari_code_execution' }])
        expect(answered.status).toBe(status)
        expect(answered.headers.get('content-type')).toContain('application/json')
        expect(answered.body).toMatchObject({ detail: way.dialect === 'chat' ? expect.any(String) : {} })
        expect([rig.sent('other'), rig.brokers.asked.opened, rig.brokers.settled]).toEqual([[], [], []])
      }
      rig.play(done)
      expect((await rig.ask('other', way, [{ type: 'otari_code_execution' }])).text).toBe('Done.')
    },
  )
})
