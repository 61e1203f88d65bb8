import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { makeKey, openaiClient, ask as post } from './client.ts'
import { job } from './scripted-jobs.ts'
import type { System } from './system.ts'

const ID = 'otari-container-id'

const request = (tag: string, container?: string) => ({
  model: 'openai:gpt-5',
  messages: [{ role: 'user' as const, content: job(tag, 'code') }],
  // the client's types know the vendor's own tools alone
  tools: [{ type: 'otari_code_execution', container }] as unknown as OpenAI.ChatCompletionTool[],
})

/** A sandbox of the bundled backend, from one request to the next. */
export function keptSandbox(use: () => System): void {
  describe('a sandbox that outlives its request', () => {
    const ask = (key: string, tag: string, container?: string) =>
      openaiClient(use().deployment, key).chat.completions.create(request(tag, container)).withResponse()

    test('C-06 C-09 C-10 C-16 C-18 C-32 is found by the next one as the last one left it', async () => {
      const { key } = use()
      const first = await ask(key, 'keeps.walnut', 'auto')
      const id = first.response.headers.get(ID) ?? ''
      expect(id).toMatch(/^otari_cntr_[0-9a-f]{32}$/)
      const ends = [first.response.headers.get('otari-container-expires-at') ?? '']
      for (const tag of ['finds.walnut', 'finds.again']) {
        const next = await ask(key, tag, id)
        expect(next.data.choices[0]?.message.content).toContain('found walnut and the file of walnut')
        expect(next.response.headers.get(ID)).toBe(id)
        ends.push(next.response.headers.get('otari-container-expires-at') ?? '')
      }
      expect(ends.toSorted()).toEqual(ends)
      expect(new Set(ends).size).toBe(3)
    })

    test('C-01 C-02 C-13 C-15 is nobody’s who does not ask for it, and nobody else’s', async () => {
      const { deployment, key } = use()
      const id = (await ask(key, 'keeps.pecan', 'auto')).response.headers.get(ID) ?? ''
      const plain = await ask(key, 'finds.none')
      expect(plain.data.choices[0]?.message.content).toContain('NameError')
      expect(plain.response.headers.get(ID)).toBeNull()
      const user_id = 'stranger'
      await post(deployment, 'POST', '/api/v1/users', { key: deployment.masterKey, body: { user_id } })
      const stranger = await makeKey(deployment, { user_id })
      for (const [asker, named] of [
        [stranger, id],
        [key, `otari_cntr_${'f'.repeat(32)}`],
      ] as const) {
        const refused = await post(deployment, 'POST', '/api/v1/chat/completions', {
          key: asker,
          body: request('finds.pecan', named),
        })
        expect(refused.status).toBe(400)
        expect(refused.json).toEqual({ detail: `Container '${named}' has expired or does not exist.` })
      }
      expect((await ask(key, 'finds.pecan', id)).data.choices[0]?.message.content).toContain('found pecan')
    })
  })
}
