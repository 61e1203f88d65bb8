import { describe, expect, test } from 'vitest'
import { ask } from './client.ts'
import { steadyPort } from './ports.ts'
import type { System } from './system.ts'

const PATH = '/api/v1/tool-settings'

/** How the tools behave can be changed without a restart, however the services are put together. */
export function changedToolSettings(use: () => System): void {
  const change = (body: object) => {
    const { deployment } = use()
    return ask(deployment, 'PATCH', PATH, { key: deployment.masterKey, body })
  }
  const searches = async () => {
    const { deployment, key } = use()
    const { json } = await ask(deployment, 'GET', '/api/v1/tools', { key })
    return json.data.find(({ id }: { id: string }) => id === 'otari_web_search').available
  }

  describe('a tool setting', () => {
    test('CFG-52 is in force while everything runs, until it is taken back', async () => {
      const { deployment, key } = use()
      expect(await searches()).toBe(true)
      expect((await change({ web_search_default_tool: 'none' })).status).toBe(200)
      await expect.poll(searches, { timeout: 30_000 }).toBe(false)
      const { json } = await ask(deployment, 'GET', PATH, { key })
      expect(json).toContainEqual(expect.objectContaining({ key: 'web_search_default_tool', value: 'none' }))
      expect((await change({ web_search_default_tool: null })).status).toBe(200)
      await expect.poll(searches, { timeout: 30_000 }).toBe(true)
    })

    test('S-32 that names nothing is refused by the service that would act on it', async () => {
      const { status, json } = await change({ web_search_default_tool: 'nobody' })
      expect([status, json.detail[0].msg]).toEqual([422, 'names no search tool; there is engine, none'])
    })

    test('CFG-54 is tried at the backends it would name', async () => {
      const { deployment, outside } = use()
      const tryAt = async (service: string, url: string) => {
        const request = { key: deployment.masterKey, body: { url } }
        return (await ask(deployment, 'POST', `${PATH}/${service}/test`, request)).json
      }
      const nobody = `http://127.0.0.1:${await steadyPort()}`
      expect(await tryAt('web_search', outside.search.url)).toEqual({ ok: true, reason: null })
      expect(await tryAt('web_search', nobody)).toEqual({ ok: false, reason: 'network' })
      expect(await tryAt('sandbox', nobody)).toEqual({ ok: false, reason: 'nothing answers there' })
    })
  })
}
