import { describe, expect, test } from 'vitest'
import { ask, setPrice } from './client.ts'
import type { System } from './system.ts'

const wordsFor = (tool: string) =>
  `The gateway tool '${tool}' has no pricing, and this gateway runs with require_pricing enabled, so it will not run work it cannot bill. Set a per-request price for model_key 'otari:${tool}' (POST /api/v1/pricing, or the dashboard's Tools & Guardrails screen), or set require_pricing to false to serve it unpriced.`

/** Nothing runs that could not be billed. */
export function unpricedWork(use: () => System): void {
  const send = (model: string, ...types: string[]) => {
    const { deployment, key } = use()
    return ask(deployment, 'POST', '/v1/chat/completions', {
      key,
      body: { model, messages: [{ role: 'user', content: 'job unpriced ' }], tools: types.map((type) => ({ type })) },
    })
  }
  const remove = async (path: string) => {
    const { deployment } = use()
    const { status } = await ask(deployment, 'DELETE', `/api/v1/pricing/${path}`, { key: deployment.masterKey })
    expect(status).toBe(204)
  }

  describe('P-15 R-61 what nothing prices is a 402 with its code before any model is asked', () => {
    test('P-17 P-19 for a tool, the first in order, and P-16 a zero rate is a price', async () => {
      const { deployment, outside } = use()
      await remove('otari:code_execution')
      await remove('otari:web_fetch')
      try {
        const before = outside.openai.requests.length
        const both = await send('openai:gpt-5', 'otari_web_search', 'otari_code_execution', 'otari_web_fetch')
        expect([both.status, both.json]).toEqual([
          402,
          { detail: wordsFor('code_execution'), code: 'pricing_required' },
        ])
        const fetching = await send('openai:gpt-5', 'otari_web_fetch')
        expect([fetching.status, fetching.json]).toEqual([
          402,
          { detail: wordsFor('web_fetch'), code: 'pricing_required' },
        ])
        expect(outside.openai.requests).toHaveLength(before)
        await setPrice(deployment, 'otari:web_fetch', 0)
        expect((await send('openai:gpt-5', 'otari_web_fetch')).status).toBe(200)
      } finally {
        await setPrice(deployment, 'otari:code_execution', 1_234)
        await setPrice(deployment, 'otari:web_fetch', 10_000)
      }
    })

    test('P-16 for a model; a search is priced by the row of its instance alone', async () => {
      const { outside } = use()
      const before = outside.openai.requests.length
      const unpriced = await send('openai:nobody-priced-this', 'otari_web_search')
      expect(unpriced).toMatchObject({ status: 402, json: { code: 'pricing_required' } })
      expect(outside.openai.requests).toHaveLength(before)
      // there is no row `otari:web_search`, or there is the free one of a first start: neither is needed
      await remove('otari:web_search').catch(() => undefined)
      expect((await send('openai:gpt-5', 'otari_web_search')).status).toBe(200)
    })
  })
}
