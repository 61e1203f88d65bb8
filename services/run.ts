import { parseArgs } from 'node:util'
import { ConfigError, effectiveConfig, type Loaded, loadConfig } from '@tollgate/config'
import { openLog } from '@tollgate/telemetry'
import { isServiceName, serviceNames } from './open.ts'
import { start } from './start.ts'

const usage = `usage: npm run service <${['all', ...serviceNames, 'mcp-web', 'check-config'].join('|')}>
settings come from the file that OTARI_CONFIG names and from OTARI_<NAME>; config.example.yml shows every one`

/** The one place that reads the environment. Everything else is handed what it needs. */
async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, strict: false })
  const [command = 'all', ...rest] = positionals
  if (values.help || values.h) return console.log(usage)
  if (rest.length > 0 || Object.keys(values).length > 0) fail(usage)
  const loaded = read()
  if (command === 'check-config') {
    console.log(JSON.stringify(effectiveConfig(loaded), null, 2))
    for (const warning of loaded.warnings) console.error(`warning: ${warning}`)
    return
  }
  if (command !== 'all' && command !== 'mcp-web' && !isServiceName(command)) fail(usage)
  const log = openLog({
    service: command === 'all' ? 'tollgate' : command,
    level: loaded.config.log_level,
    // its standard output is its client's
    ...(command === 'mcp-web' ? { write: (line: string) => void process.stderr.write(line) } : {}),
  })
  for (const warning of loaded.warnings) log.warn({}, warning)
  // probes on a port of their own are for a cluster: one process on a laptop serves them only when it is told to
  const noProbes = command === 'mcp-web' || (command === 'all' && !loaded.origins.health_port)
  const healthPort = noProbes ? 0 : loaded.config.health_port
  await start(command, { config: loaded.config, env: process.env, log, healthPort })
}

function read(): Loaded {
  try {
    return loadConfig(process.env.OTARI_CONFIG || undefined, process.env)
  } catch (error) {
    if (error instanceof ConfigError) fail(error.message)
    throw error
  }
}

function fail(why: string): never {
  console.error(why)
  process.exit(1)
}

await main()
