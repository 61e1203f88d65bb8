import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Measured, startNode } from './processes.ts'

const folder = join(import.meta.dirname, '../../node_modules/.cache/bench/portkey')
const entry = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js')

/** The peer, fetched when the bench wants it. Its own lockfile's server versions: with newer ones its streams fail. */
const manifest = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2' },
  overrides: { hono: '4.9.7', '@hono/node-server': '1.3.3', '@hono/node-ws': '1.2.0' },
}

export async function startPortkey(port: number): Promise<Measured> {
  if (!existsSync(entry)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    const { status, stderr } = spawnSync('npm', ['install', '--silent', '--ignore-scripts', '--no-audit'], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`the peer could not be installed: ${stderr}`)
  }
  return startNode([entry, '--headless', `--port=${port}`], `http://127.0.0.1:${port}`, { NODE_ENV: 'production' })
}
