import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fakeSearxng, freePort, openSite } from '@tollgate/testing'
import { startScript } from './processes.ts'
import { median, quantile, round } from './statistics.ts'

const WARM = 50
const REQUESTS = 200
const masterKey = 'bench-master-key-0123456789'
const tools = ['otari_web_search', 'otari_web_fetch', 'otari_code_execution'].map((type) => ({ type }))
const question = 'search for rivers, then read http://93.184.216.34/page and calculate 6*7'

/**
 * A request whose model calls all three tools in turn: how long it takes beyond what its tools took themselves (their
 * spans' time, from the metrics). Everything of ours in one process, the scripted model, a search engine and a site here.
 */
export async function benchTools(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-tools-'))
  const page = `<!doctype html><title>page</title><article><h1>Rivers</h1>${'<p>A river is a long stream of water.</p>'.repeat(50)}</article>`
  const [port, health] = await Promise.all([freePort(), freePort()])
  const [search, site] = await Promise.all([
    fakeSearxng(),
    openSite((_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page), {
      isProxy: true,
    }),
  ])
  search.finds([{ url: 'http://93.184.216.34/hit', title: 'Rivers', content: 'about rivers' }])
  const config = join(folder, 'config.yml')
  writeFileSync(config, JSON.stringify({ search_tools: { engine: { provider: 'searxng', api_base: search.url } } }))
  const origin = `http://127.0.0.1:${port}`
  const gateway = await startScript('services/run.ts', ['all'], `${origin}/health`, {
    OTARI_CONFIG: config,
    OTARI_HOST: '127.0.0.1',
    OTARI_PORT: String(port),
    OTARI_HEALTH_PORT: String(health),
    OTARI_DATA_DIR: join(folder, 'data'),
    OTARI_MASTER_KEY: masterKey,
    OTARI_LOG_LEVEL: 'error',
    OTARI_WEB_FETCH_ENABLED: 'true',
    OTARI_WEB_RETRIEVAL_TRUST_ENV_PROXY: 'true',
    HTTP_PROXY: `http://127.0.0.1:${site.port}`,
  })
  try {
    const ask = async () => {
      const began = performance.now()
      const response = await fetch(`${origin}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'demo:tools',
          user: 'default',
          messages: [{ role: 'user', content: question }],
          tools,
        }),
      })
      const text = await response.text()
      if (response.status !== 200 || !text.includes('42') || text.includes('[tool error]'))
        throw new Error(`not the answer of three tools (${response.status}): ${text.slice(0, 500)}`)
      return performance.now() - began
    }
    for (let i = 0; i < WARM; i++) await ask()
    const before = await toolMillis(health)
    const times: number[] = []
    for (let i = 0; i < REQUESTS; i++) times.push(await ask())
    const own = ((await toolMillis(health)) - before) / REQUESTS
    const mean = times.reduce((sum, ms) => sum + ms, 0) / REQUESTS
    console.log(
      `a request with three tools: p50 ${round(median(times))} ms, p95 ${round(quantile(times, 0.95))} ms, mean ${round(mean)} ms`,
    )
    console.log(
      `its tools' own time: ${round(own)} ms; everything else (four rounds, ledger, session): ${round(mean - own)} ms`,
    )
  } finally {
    await gateway.stop()
    await Promise.all([search.close(), site.close()])
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Time spent inside tools so far, all of them together. */
async function toolMillis(healthPort: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text()
  const sums = [...text.matchAll(/^tool_seconds_sum\{[^}]*\} (\S+)/gm)].map(([, value]) => Number(value))
  if (sums.length === 0) throw new Error('no tool_seconds in the metrics')
  return sums.reduce((sum, seconds) => sum + seconds, 0) * 1_000
}
