import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryBus } from '@tollgate/bus'
import { renderPage } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import { dnsStub, loopbackDialer } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RenderWorkerSettings, startRenderWorker } from '../src/index.ts'
import { browserForTests } from './browser-for-tests.ts'

const PUBLIC = '93.184.216.34'
const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }
const { executable, why } = browserForTests()
if (executable === undefined) console.warn(`not tested in a real browser: ${why}`)

type Input = Partial<Parameters<typeof inputOf>[0]>
const inputOf = (input: {
  url: string
  timeoutMs: number
  policy: { allowedDomains?: string[] | null; blockedDomains?: string[] }
  maxHtmlLength: number
}) => ({ tenancy, ...input })

describe.skipIf(executable === undefined)('WM-07 a page in a real browser', () => {
  let current: RequestListener = (_request, response) => response.end()
  let world: Awaited<ReturnType<typeof openWorld>>

  async function openWorld(more: RenderWorkerSettings['limits'] = {}) {
    const limits = { quietMs: 300, settleMs: 2_000, ...more }
    const requests: string[] = []
    const site = createServer((request, response) => {
      requests.push(request.url ?? '')
      current(request, response)
    })
    /** Whoever comes here was let through to this machine. */
    const recorder = createServer((_request, response) => response.end('secret'))
    let connections = 0
    recorder.on('connection', () => connections++)
    const [sitePort, port] = [await listen(site), await listen(recorder)]
    const dns = dnsStub({ 'site.test': [PUBLIC], 'other.test': [PUBLIC], 'inside.test': ['127.0.0.1'] })
    const dialer = loopbackDialer({ [PUBLIC]: sitePort })
    const log = openLog({ service: 'render-worker', level: 'error' })
    const bus = memoryBus({ log })
    const worker = await startRenderWorker({
      bus,
      log,
      settings: { executable: executable as string, slots: 2, isSandboxed: process.getuid?.() !== 0, limits },
      resolve: (host) => dns.resolve(host),
      dialer,
    })
    return {
      port,
      dialer,
      requests,
      connections: () => connections,
      render: (url: string, input: Input = {}, signal?: AbortSignal) =>
        bus.call(renderPage, inputOf({ timeoutMs: 15_000, policy: {}, maxHtmlLength: 1_000_000, ...input, url }), {
          deadline: Date.now() + 30_000,
          ...(signal ? { signal } : {}),
        }),
      async close() {
        await bus.drain(Date.now())
        await worker.close(Date.now() + 1_000)
        for (const server of [site, recorder]) server.close().closeAllConnections()
      },
    }
  }

  /** The site answers by path; what it was asked for starts again. */
  const serve = (pages: Record<string, string | RequestListener>) => {
    world.requests.length = 0
    current = (request, response) => {
      const page = pages[request.url ?? '']
      if (typeof page === 'function') return page(request, response)
      response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
    }
  }
  const htmlOf = (page: Awaited<ReturnType<typeof world.render>>): string =>
    page.status === 'ok' ? page.html : page.failure

  beforeAll(async () => {
    world = await openWorld()
  }, 60_000)
  afterAll(() => world.close())

  test('text that a script makes is there, and what it loads by scripts of its own', async () => {
    serve({
      '/': '<title>T</title><div id=root></div><script src=/app.js></script>',
      '/app.js': (_request, response) => {
        response.setHeader('content-type', 'text/javascript')
        response.end("fetch('/data').then(r => r.json()).then(d => { root.innerHTML = '<h1>' + d.said + '</h1>' })")
      },
      '/data': (_request, response) =>
        response.setHeader('content-type', 'application/json').end('{"said":"Made by a script"}'),
    })
    const page = await world.render('http://site.test/')
    expect(page).toMatchObject({ status: 'ok', finalUrl: 'http://site.test/', httpStatus: 200, isCut: false })
    expect(htmlOf(page)).toContain('<h1>Made by a script</h1>')
  })

  test('text in open shadow trees is laid open, and a longer document is cut', async () => {
    serve({
      '/': "<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML='<p>In the shadow</p>'</script>",
    })
    expect(htmlOf(await world.render('http://site.test/'))).toContain('<p>In the shadow</p>')
    expect(await world.render('http://site.test/', { maxHtmlLength: 50 })).toMatchObject({ status: 'ok', isCut: true })
  })

  test('images, fonts and media are not loaded', async () => {
    serve({
      '/': '<img src=/a.png><video src=/b.mp4></video><style>@font-face{font-family:x;src:url(/c.woff)} p{font-family:x}</style><p>Text',
    })
    expect(htmlOf(await world.render('http://site.test/'))).toContain('Text')
    expect(world.requests).toEqual(['/'])
  })

  test('nothing it asks for reaches an address that is not public, whatever way it goes', async () => {
    const inside = `http://127.0.0.1:${world.port}`
    const hosts = [
      inside,
      `http://localhost:${world.port}`,
      `http://inside.test:${world.port}`,
      `http://[::1]:${world.port}`,
      'http://169.254.169.254',
    ]
    const asked = hosts.flatMap((host) => [`${host}/a`, `${host.replace('http:', 'https:')}/b`])
    serve({
      '/': `<iframe src="${inside}/frame"></iframe><link rel=stylesheet href="${inside}/style"><link rel=preconnect href="${inside}">
        <script src="${inside}/script"></script><form id=f action="${inside}/form" target=_blank></form>
        <script>
          const out = document.createElement('p')
          const say = (text) => { out.textContent += text + ' '; document.body.append(out) }
          for (const url of ${JSON.stringify(asked)}) fetch(url, { mode: 'no-cors' }).then(() => say('reached'), () => say('refused'))
          for (const url of ${JSON.stringify(asked)}) try { new WebSocket(url.replace('http', 'ws')).onopen = () => say('opened') } catch {}
          navigator.sendBeacon('${inside}/beacon', 'x')
          new EventSource('${inside}/events')
          window.open('${inside}/popup'); f.submit()
          const rtc = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${world.port}' }, { urls: 'turn:127.0.0.1:${world.port}?transport=tcp', username: 'a', credential: 'b' }] })
          rtc.createDataChannel('x'); rtc.createOffer().then((offer) => rtc.setLocalDescription(offer))
          fetch('/away').then(() => say('reached'), () => say('refused'))
          navigator.serviceWorker?.register('/sw.js').then(() => say('registered'), () => {})
        </script>`,
      '/away': (_request, response) => response.writeHead(302, { location: `${inside}/redirected` }).end(),
    })
    const said = /<p>([^<]*)<\/p>/.exec(htmlOf(await world.render('http://site.test/')))?.[1] ?? ''
    expect(said.trim().split(' ')).toEqual(Array(asked.length + 1).fill('refused'))
    expect(world.connections()).toBe(0)
    expect(world.dialer.dialed.filter(({ address }) => address !== PUBLIC)).toEqual([])
  })

  test('a page that is not public, or leads there, is refused', async () => {
    const inside = `http://127.0.0.1:${world.port}/`
    serve({
      '/away': (_request, response) => response.writeHead(302, { location: inside }).end(),
      '/script': `<script>location = '${inside}'</script>`,
      '/refresh': `<meta http-equiv=refresh content="0;url=${inside}">`,
      '/file': "<script>location = 'file:///etc/passwd'</script><p>Stayed",
    })
    const comesTo = async (...urls: string[]) => (await Promise.all(urls.map((url) => world.render(url)))).map(htmlOf)
    const refused = [inside, `http://inside.test:${world.port}/`]
    const none = ['file:///etc/passwd', 'chrome://version', 'http://user:pass@site.test/', 'data:text/html,x']
    expect(new Set(await comesTo(...refused, ...none))).toEqual(new Set(['url_disallowed']))
    const led = ['away', 'script', 'refresh', 'file'].map((path) => `http://site.test/${path}`)
    const [away, ...scripted] = await comesTo(...led)
    expect(away).toBe('redirect_disallowed')
    expect(scripted.join(' ')).not.toMatch(/secret|root:/)
    expect(world.connections()).toBe(0)
  })

  test("a workspace's domains bind everything a page asks for", async () => {
    serve({
      '/': "<script>fetch('http://other.test/x',{mode:'no-cors'}).then(() => document.write('reached'), () => document.write('refused'))</script>",
    })
    const policy = { blockedDomains: ['other.test'] }
    expect(htmlOf(await world.render('http://site.test/', { policy }))).toContain('refused')
    expect(htmlOf(await world.render('http://other.test/', { policy }))).toBe('domain_disallowed')
    expect(world.requests).toEqual(['/'])
  })

  test('dialogs, popups and downloads are nothing', async () => {
    serve({
      '/': "<script>alert(1); confirm(2); prompt(3); print(); open('/popup'); onbeforeunload = () => 'stay'</script><a id=a href=/file download></a><script>a.click()</script><p>Text",
      '/file': (_request, response) =>
        response
          .writeHead(200, { 'content-type': 'application/octet-stream', 'content-disposition': 'attachment' })
          .end('bytes'),
    })
    expect(htmlOf(await world.render('http://site.test/'))).toContain('Text')
    expect(htmlOf(await world.render('http://site.test/file'))).toBe('unsupported_type')
  })

  test('nothing is left of a page for the next one', async () => {
    serve({
      '/': "<script>document.write('[' + document.cookie + localStorage.x + ']'); document.cookie = 'a=b'; localStorage.x = 1</script>",
    })
    for (let turn = 0; turn < 2; turn++)
      expect(htmlOf(await world.render('http://site.test/'))).toContain('[undefined]')
  })

  test('an error page is an error; a name that is none is none', async () => {
    serve({})
    expect(await world.render('http://site.test/missing')).toMatchObject({ failure: 'http_status', httpStatus: 404 })
    expect(await world.render('http://nowhere.test/')).toMatchObject({ failure: 'network', stage: 'resolve' })
  })

  test('a page without an end ends at its deadline, while another is shown', async () => {
    serve({
      '/spin': '<p>Text</p><script>setTimeout(() => { for (;;); })</script>',
      '/stall': (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).write('<p>'),
      '/': '<p>Neighbour',
    })
    const endless = [
      world.render('http://site.test/spin', { timeoutMs: 2_500 }),
      world.render('http://site.test/stall', { timeoutMs: 2_500 }),
    ]
    expect((await Promise.all(endless)).map(htmlOf)).toEqual(['timeout', 'timeout'])
    expect(htmlOf(await world.render('http://site.test/'))).toContain('Neighbour')
  })

  test('a caller who leaves ends the page', async () => {
    let reached = () => {}
    const stalled = new Promise<void>((resolve) => (reached = resolve))
    serve({ '/stall': () => reached() })
    const gone = new AbortController()
    const leaving = world.render('http://site.test/stall', {}, gone.signal)
    await stalled
    gone.abort()
    await expect(leaving).rejects.toMatchObject({ failure: 'cancelled' })
  })

  test('a page that takes more bytes or requests than it may is cut off', async () => {
    const small = await openWorld({ pageBytes: 200_000, requests: 5 })
    serve({
      '/large': 'x'.repeat(400_000),
      '/many': "<script>for (let n = 0; n < 50; n++) fetch('/n' + n).catch(() => {})</script><p>Text",
    })
    expect(htmlOf(await small.render('http://site.test/large'))).toBe('too_large')
    expect(htmlOf(await small.render('http://site.test/many'))).toContain('Text')
    expect(small.requests.filter((path) => path.startsWith('/n')).length).toBeLessThanOrEqual(5)
    await small.close()
  })

  test('a page made so that it cannot be written down fails alone', async () => {
    const deep = (into: string) =>
      `<p>Text<script>let at = document.body; for (let n = 0; n < 5000; n++) at = ${into}</script>`
    serve({
      '/deep': deep("at.appendChild(document.createElement('div'))"),
      '/shadows': deep("at.appendChild(document.createElement('div')).attachShadow({ mode: 'open' })"),
      '/page': '<p>Text of a page.',
    })
    for (const path of ['/deep', '/shadows']) {
      const failed = { failure: 'extraction_failed', reason: 'crash' }
      expect(await world.render(`http://site.test${path}`), path).toMatchObject(failed)
    }
    expect(htmlOf(await world.render('http://site.test/page'))).toContain('Text of a page.')
  })

  test('a browser that takes too much memory is replaced, and its page fails', async () => {
    const small = await openWorld({ memoryBytes: 1 })
    serve({ '/': '<p>Text', '/stall': () => {} })
    expect(await small.render('http://site.test/stall')).toMatchObject({
      failure: 'extraction_failed',
      reason: 'memory',
    })
    await small.close()
  })
})

const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return (server.address() as AddressInfo).port
}
