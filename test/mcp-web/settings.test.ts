import { loadConfig } from '@tollgate/config'
import { defaultWebSettings } from '@tollgate/mcp-web'
import { describe, expect, test } from 'vitest'
import { searchSettings, webServerSettings } from '../../services/slices.ts'
import { bareEnvironment, startService } from '../system/service-process.ts'
import { webpage } from './strict.ts'
import { SITE, serving, sharedWorld } from './world.ts'

const settingsOf = (env: Record<string, string>) => webServerSettings(loadConfig(undefined, env).config)

test('WM-10 variables reach the tools in the units of each', () => {
  expect(settingsOf({})).toEqual(defaultWebSettings)
  const env = {
    DPTTOOLS_WEB_FETCH_TIMEOUT: '1.5',
    DPTTOOLS_IMAGE_MAX_MB: '0.25',
    DPTTOOLS_WEB_FETCH_ALLOW_HOSTS: 'a.corp',
  }
  expect(settingsOf(env)).toMatchObject({
    operationTimeoutMs: 1_500,
    maxEncodedBytes: 250_000,
    allowedHosts: ['a.corp'],
  })
})

test('WM-13 the key is in the search-broker’s settings and in no other', () => {
  const { config } = loadConfig(undefined, {
    DPTTOOLS_WEB_SEARCH_PROVIDER: 'Serper',
    DPTTOOLS_WEB_SEARCH_API_KEY: 'canary',
  })
  expect(searchSettings(config).mcp).toMatchObject({ provider: 'serper', apiKey: 'canary' })
  expect(JSON.stringify(webServerSettings(config))).not.toContain('canary')
})

describe('with the defaults', () => {
  const world = sharedWorld()

  test('WM-10 WM-42 2,000,000 bytes of a page are read', async () => {
    world().answering(serving('text/plain', 'x'.repeat(2_000_001)))
    const page = await world().read(webpage, 'fetch_webpage', { url: `${SITE}/long` })
    expect(page).toMatchObject({ byte_cap_reached: true, total_chars: 2_000_000, next_offset: 10_000 })
    expect(page.text).toHaveLength(10_000)
  })

  test('WM-10 WM-53 an image may have 10,000,000 bytes', async () => {
    const declaring = (length: number) => {
      world().answering((_request, response) => {
        response
          .writeHead(200, { 'content-type': 'image/png', 'content-length': String(length) })
          .end(Buffer.alloc(length))
      })
      return world().fails('fetch_image', { url: `${SITE}/big.png` })
    }
    expect(await declaring(10_000_001)).toContain('too large')
    expect(await declaring(10_000_000)).not.toContain('too large')
  })

  test('WM-10 no host of this machine or a private network is reached', async () => {
    for (const host of ['127.0.0.1', 'localhost', '10.1.2.3']) {
      expect(await world().fails('fetch_webpage', { url: `http://${host}/` })).toContain('address not allowed')
    }
  })
})

test('WM-12 a number that does not parse ends the process, which names the variable', async () => {
  const service = startService('mcp-web', { env: { ...bareEnvironment(), DPTTOOLS_WEB_FETCH_TIMEOUT: 'abc' } })
  expect((await service.ended).code).toBeGreaterThan(0)
  expect(service.output()).toContain('DPTTOOLS_WEB_FETCH_TIMEOUT')
})
