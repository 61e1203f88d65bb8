import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject } from '../../src/conversation/turn.ts'
import type { Executor } from '../../src/loop/executors.ts'
import { readsPolicies } from '../../src/loop/plan.ts'
import { brokenAnswer } from '../../src/models/upstream-fault.ts'
import { narrowsNothing } from '../../src/policies/policy.ts'
import { defaultSettings } from '../../src/settings.ts'
import { exaInstance } from '../brokers.ts'
import { turnOf } from '../turns.ts'
import { anthropic, chatTarget, type Given, planOf, ran, refusal } from './planning.ts'
import { answers, calls, scripted } from './scripted-provider.ts'
import { gather, openLoop } from './serving.ts'

const code = { type: 'otari_code_execution' }
const search = { type: 'otari_web_search' }
const fetch = { type: 'otari_web_fetch' }
const dated = { type: 'code_execution_20250825' }
const optionsOf = (tools: JsonObject[], name: string, given?: Given) => planOf(tools, given).owned.get(name)?.options

const executors: (Executor | undefined)[] = ['auto', 'otari', 'provider']
const orUnset = [undefined, ...executors]
const pinsText =
  "this workspace's code-execution policy decides who runs code; the Otari-Code-Execution header cannot choose otherwise"

describe('who runs code', () => {
  const layers = executors.flatMap((executor = 'auto') =>
    orUnset.flatMap((header) => orUnset.map((pin) => ({ executor, header, pin }))),
  )
  const given = ({ executor, header, pin }: (typeof layers)[number], more: Given = {}): Given => ({
    turn: { dialect: 'messages' },
    target: anthropic,
    executors: header === undefined ? {} : { code_execution: header },
    policies: { code: { executor: pin ?? null } },
    ...more,
    capabilities: { executor, ...more.capabilities },
  })

  test.each(layers)('X-06 X-07 default $executor, header $header, pin $pin', (layer) => {
    const { executor, header, pin } = layer
    if (pin !== undefined && header !== undefined && header !== pin) {
      expect(refusal([dated], given(layer))).toEqual([403, pinsText])
      // nothing is decided where no provider keyword is declared
      expect(ran([code], given(layer))).toEqual(['code_execution'])
      return
    }
    const chosen = pin ?? header ?? executor
    expect(ran([dated], given(layer))).toEqual(chosen === 'otari' ? ['code_execution'] : [])
    const elsewhere = given(layer, { target: { ...anthropic, vendor: 'other' } })
    expect(ran([dated], elsewhere)).toEqual(chosen === 'provider' ? [] : ['code_execution'])
  })

  test.each(layers)(
    'X-09 X-10 no pin is read without a sandbox: default $executor, header $header, pin $pin',
    (layer) => {
      const bare = given(layer, { capabilities: { sandbox: false } })
      if ((layer.header ?? layer.executor) === 'otari') {
        expect(refusal([dated], bare)).toEqual([
          400,
          'code execution was asked to run on this gateway but no sandbox is configured. Set OTARI_SANDBOX_URL on the gateway, or let the provider run it.',
        ])
      } else {
        expect(ran([dated], bare)).toEqual([])
      }
    },
  )

  test('C-25 a pin to the provider outranks an id of ours, and X-11 not the explicit type', () => {
    const policies = { code: { executor: 'provider' as const } }
    const turn = { raw: { container: `otari_cntr_${'a'.repeat(32)}` }, dialect: 'messages' as const }
    expect(refusal([dated], { policies, turn, target: anthropic })[1]).toMatch(
      /^container names a sandbox this gateway holds/,
    )
    expect(ran([code], { policies })).toEqual(['code_execution'])
  })
})

describe('a code-execution policy', () => {
  const off = { code: { enabled: false } }
  const messages = { turn: { dialect: 'messages' as const }, target: anthropic }

  test('W-20 X-18 that is off refuses what would run here, and W-21 X-09 nothing that runs elsewhere', () => {
    const text = [403, 'code execution is not enabled for this workspace']
    expect(refusal([code], { policies: off })).toEqual(text)
    expect(refusal([{ type: 'code_execution' }], { policies: off })).toEqual(text)
    expect(ran([dated], { policies: off, ...messages })).toEqual([])
    expect(ran([dated], { policies: off, ...messages, capabilities: { sandbox: false } })).toEqual([])
    expect(ran([search], { policies: off })).toEqual(['web_search'])
  })

  test('W-05 whose tool list has no kind that is served refuses', () => {
    const tools = ['bash_code_execution', 'text_editor_code_execution']
    expect(refusal([code], { policies: { code: { tools } } })).toEqual([
      403,
      "code execution is not available to this workspace: its policy's tool list excludes every tool kind this gateway's sandbox serves.",
    ])
    expect(ran([code], { policies: { code: { tools: ['code_execution', ...tools] } } })).toEqual(['code_execution'])
  })

  test('W-04 whose image is no longer allowed refuses, and one that is is asked for (W-22)', () => {
    const policies = { code: { image: 'python-3.11' } }
    expect(refusal([code], { policies })).toEqual([
      403,
      "this workspace's code-execution policy pins a sandbox image that is not allowed",
    ])
    for (const settings of [
      { sandboxAllowedSessionImages: ['python-3.11'] },
      { sandboxSessionImage: 'python-3.11', sandboxAllowedSessionImages: [] },
    ]) {
      expect(optionsOf([code], 'code_execution', { policies, settings })?.image).toBe('python-3.11')
    }
  })

  test('L-05 narrows the rounds of a request that runs code here, and of no other', () => {
    const rounds = (tools: JsonObject[], given: Given) => planOf(tools, given).turn.maxToolIterations
    const policies = { code: { maxIterations: 2 } }
    expect(rounds([code], { policies })).toBe(2)
    expect(rounds([code], { policies, turn: { maxToolIterations: 1 } })).toBe(1)
    expect(rounds([search], { policies })).toBe(10)
    expect(rounds([dated], { policies, ...messages })).toBe(10)
  })

  test('T-30 a hint: declaration, workspace, deployment, built in', () => {
    const told = (tools: JsonObject[], given: Given) =>
      planOf(tools, given)
        .messages.at(0)
        ?.parts.map((part) => (part.type === 'text' ? part.text : ''))
        .join()
    for (const [entry, policies, setting, builtIn] of [
      [code, { code: { hint: 'of workspace' } }, 'sandboxPurposeHint', 'Use it to calculate'],
      [search, { web: { hint: 'of workspace' } }, 'webSearchPurposeHint', 'Use it for anything recent.'],
    ] as const) {
      const settings = { [setting]: 'of deployment' }
      expect(told([{ ...entry, purpose_hint: 'of declaration' }], { policies, settings })).toContain(': of declaration')
      expect(told([entry], { policies, settings })).toContain(': of workspace')
      expect(told([entry], { settings })).toContain(': of deployment')
      expect(told([entry], {})).toContain(builtIn)
    }
  })
})

describe('a web-access policy', () => {
  test('W-31 W-41 that is off refuses by what is declared', () => {
    const policies = { web: { enabled: false } }
    const of = (...tools: JsonObject[]) => refusal(tools, { policies })
    expect(of(search)).toEqual([403, 'web search is not enabled for this workspace'])
    expect(of(fetch)).toEqual([403, 'web access is not enabled for this workspace'])
    expect(of(search, fetch)).toEqual([403, 'web access is not enabled for this workspace'])
    expect(ran([code], { policies })).toEqual(['code_execution'])
  })

  test.each([
    [undefined, undefined, 3, 3],
    [undefined, undefined, 9, 5],
    [undefined, 7, 9, 7],
    [10, undefined, 3, 3],
    [2, undefined, 3, 2],
    [40, undefined, null, 40],
    [undefined, undefined, null, undefined],
  ])('W-32 S-33 of %s declared and %s of the deployment, a policy of %s leaves %s', (declared, setting, most, left) => {
    const entry = declared === undefined ? search : { ...search, max_results: declared }
    const given = { settings: { webSearchMaxResults: setting }, policies: { web: { maxResults: most } } }
    expect(optionsOf([entry], 'web_search', given)?.maxResults).toBe(left)
    expect(optionsOf([entry, fetch], 'web_fetch', given)?.maxResults).toBeUndefined()
  })

  test('W-33 W-35 W-36 domains: the narrower of overlapping entries, the union of blocks, of both tools', () => {
    const policies = { web: { domains: { allowedDomains: ['example.com', 'a.test'], blockedDomains: ['x.test'] } } }
    const entry = { ...search, allowed_domains: ['docs.example.com', 'test'], blocked_domains: ['y.test'] }
    const { owned } = planOf([entry, fetch], { policies })
    for (const name of ['web_search', 'web_fetch']) {
      const domains = owned.get(name)?.options.domains
      expect(domains?.allowedDomains?.toSorted()).toEqual(['a.test', 'docs.example.com'])
      expect(domains?.blockedDomains.toSorted()).toEqual(['x.test', 'y.test'])
    }
    expect(optionsOf([fetch], 'web_fetch', { policies })?.domains).toEqual(policies.web.domains)
    expect(refusal([{ ...search, allowed_domains: ['other.test'] }], { policies })).toEqual([
      403,
      'The requested search domains are not permitted for this workspace',
    ])
  })

  test('S-35 S-36 W-37 options: the declaration’s over the workspace’s, and none that the provider does not take', () => {
    const capabilities = {
      search: { ...exaInstance, options: ['category', 'kind'].map((name) => ({ ...exaInstance.options[0]!, name })) },
    }
    const policies = { web: { providerOptions: { category: 'news', kind: 'a', colour: 'red', secret: 1 } } }
    const declared = { ...search, provider_options: { kind: 'b' } }
    expect(optionsOf([declared, fetch], 'web_search', { capabilities, policies })?.providerOptions).toEqual({
      category: 'news',
      kind: 'b',
    })
    expect(optionsOf([declared, fetch], 'web_fetch', { capabilities, policies })?.providerOptions).toEqual({})
  })

  test('W-38 brings no backend, and switches on nothing', () => {
    const policies = { web: { enabled: true, maxResults: 900 }, code: { enabled: true } }
    const capabilities = { search: null, fetch: false, sandbox: false }
    for (const entry of [code, search, fetch]) expect(refusal([entry], { policies, capabilities })[0]).toBe(400)
    expect(ran([fetch], { policies, capabilities: { search: null } })).toEqual(['web_fetch'])
  })
})

describe('the policies of a workspace', () => {
  const all = { search: exaInstance, fetch: true, sandbox: true, intercept: false, executor: 'auto' } as const
  const reads = (tools: JsonObject[], target = chatTarget, capabilities: object = {}) => {
    const turn = turnOf(tools, target === anthropic ? { dialect: 'messages' } : {})
    return readsPolicies({
      turn,
      bodyText: JSON.stringify(turn.raw),
      settings: defaultSettings,
      capabilities: { ...all, ...capabilities },
      executors: {},
      policies: narrowsNothing,
      target,
    })
  }

  test('W-21 X-09 T-33 are asked for only where they can matter', () => {
    for (const entry of [code, search, fetch, { type: 'code_interpreter' }]) expect(reads([entry])).toBe(true)
    // who runs it may be pinned
    expect(reads([dated], anthropic)).toBe(true)
    expect(reads([dated], anthropic, { sandbox: false })).toBe(false)
    expect(reads([{ type: 'web_search_20250305' }], anthropic)).toBe(false)
    expect(reads([{ type: 'web_search_20250305' }], anthropic, { intercept: true })).toBe(true)
    expect(reads([{ type: 'web_fetch_20250910' }], anthropic)).toBe(false)
    expect(reads([{ type: 'image_generation' }])).toBe(false)
    expect(reads([])).toBe(false)
  })

  test('T-33 W-21 a request that runs nothing here asks for none, one that does asks once', async () => {
    const { serve, workspace } = await openLoop()
    await gather(serve(turnOf([]), [scripted([answers('A')])]))
    await gather(serve(turnOf([{ type: 'image_generation' }]), [scripted([answers('A')])]))
    expect(workspace.asked).toBe(0)
    await gather(serve(turnOf([search, code]), [scripted([answers('A')]), scripted([answers('B')])]))
    expect(workspace.asked).toBe(1)
  })

  test('W-22 L-05 a narrowed timeout, an image and rounds reach the sandbox and the loop', async () => {
    const { serve, workspace, brokers } = await openLoop({ sandboxSessionImage: 'py' })
    const policy = { execTimeoutSeconds: 7, image: 'py', maxIterations: 2 }
    workspace.policies = { ...narrowsNothing, code: { ...narrowsNothing.code, ...policy } }
    const asks = calls(['c1', 'code_execution', { code: '1' }])
    const model = scripted([asks, answers('A'), answers('never')])
    await gather(serve(turnOf([code]), [model]))
    expect(brokers.asked.opened).toMatchObject([{ image: 'py' }])
    expect(brokers.asked.exec).toMatchObject([{ timeoutSeconds: 7 }])
    expect(model.requests).toHaveLength(2)
    // the second round is the last one, and offers no more calls (L-06)
    expect(model.requests[1]?.tools).toEqual([])
  })
})

describe('a chain of candidates', () => {
  type Script = Parameters<typeof scripted>[0]
  const text = 'code execution is not enabled for this workspace'
  const down: Script = [
    async function* () {
      yield* [] as ModelEvent[]
      throw brokenAnswer('unreachable', { name: 'native', wire: 'anthropic', hidden: [] })
    },
  ]

  /** Candidates that speak Messages; `native` ones run their keywords themselves. Code is off in the workspace. */
  async function serveChain(chain: ['native' | 'other', Script][], tools: JsonObject[] = [dated]) {
    const { serve, workspace, brokers } = await openLoop()
    workspace.policies = {
      code: { ...narrowsNothing.code, enabled: false },
      web: { ...narrowsNothing.web, enabled: false },
    }
    const candidates = chain.map(([name, script]) => ({
      provider: scripted(script, { name, wire: 'anthropic' }),
      model: 'm',
      type: name === 'native' ? ('anthropic' as const) : ('openai-compatible' as const),
    }))
    const headers = { 'otari-web-search': 'auto' }
    const ending = await gather(serve(turnOf(tools, { dialect: 'messages' }), [], { candidates, headers })).then(
      (seen) => seen.text,
      (thrown: unknown) => Fault.from(thrown),
    )
    const asked = candidates.map(({ provider }) => provider.requests.length)
    return { ending, asked, rows: brokers.settled.flatMap(({ absorbed }) => absorbed), brokers }
  }

  test('X-17 P-49 one that may not use the sandbox is passed over in its turn, and the last failure is the answer', async () => {
    const { ending, asked, rows, brokers } = await serveChain([
      ['native', down],
      ['other', []],
    ])
    expect(ending).toMatchObject({ failure: 'upstream' })
    expect(asked).toEqual([1, 0])
    expect(rows).toEqual([{ attempt: 1, model: 'm', provider: 'other', error: `Skipped: ${text}`, durationMs: 0 }])
    expect(brokers.settled).toMatchObject([{ status: 'error', provider: 'native', tenancy: { attempt: 0 } }])
  })

  test('X-17 where the first answers nobody hears of the other', async () => {
    const { ending, rows } = await serveChain([
      ['native', [answers('A')]],
      ['other', []],
    ])
    expect([ending, rows]).toEqual(['A', []])
  })

  test('S-13 W-43 the first may be passed over, and one between two failures', async () => {
    const search = [{ type: 'web_search_20250305' }]
    const first = await serveChain(
      [
        ['other', []],
        ['native', [answers('A')]],
      ],
      search,
    )
    expect([first.ending, first.asked]).toEqual(['A', [0, 1]])
    const skipped = { provider: 'other', error: 'Skipped: web search is not enabled for this workspace' }
    expect(first.rows).toMatchObject([{ attempt: 0, ...skipped }])
    const between = await serveChain([
      ['native', down],
      ['other', []],
      ['native', [answers('B')]],
    ])
    expect(between.ending).toBe('B')
    expect(between.rows.map(({ attempt, error }) => [attempt, error])).toEqual([
      [1, `Skipped: ${text}`],
      [0, 'upstream'],
    ])
  })

  test('X-18 T-32 where all are refused their refusal is the answer, before anything was asked or set aside', async () => {
    const { ending, asked, brokers } = await serveChain([
      ['other', []],
      ['other', []],
    ])
    expect(ending).toMatchObject({ status: 403, message: text })
    expect(asked).toEqual([0, 0])
    expect(brokers.asked.reserved).toEqual([])
    expect(brokers.asked.opened).toEqual([])
  })
})
