import { spawnSync } from 'node:child_process'
import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

// Runs before `npm start` and `npm test`: makes node_modules match the lockfile, and is done at once when it does.

const root = join(import.meta.dirname, '..')
const pnpm = 'pnpm@10.34.9'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) fail(`Node 20.19 or later is needed; this is ${process.versions.node}`)
if (!matches()) install()

/** pnpm leaves a copy of the lockfile that it installed. */
function matches() {
  const read = (file) => {
    try {
      return readFileSync(join(root, file), 'utf8')
    } catch {
      return undefined
    }
  }
  return read('pnpm-lock.yaml') === read('node_modules/.pnpm/lock.yaml')
}

function install() {
  console.log('installing packages (needed once, and again when pnpm-lock.yaml changes)')
  const { status, error } = spawnSync(
    'npx',
    ['-y', pnpm, 'install', '--frozen-lockfile', '--prod=false', '--config.confirmModulesPurge=false'],
    { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env: environment(), shell: process.platform === 'win32' },
  )
  if (error) fail(`npx cannot be run (${error.message}); npm comes with Node and must be on the PATH`)
  if (status !== 0)
    fail(`packages could not be installed; see above, then try: npx -y ${pnpm} install --frozen-lockfile`)
}

/** npm and pnpm keep their caches under the home folder, which a container may not let us write. */
function environment() {
  // what is installed does not depend on how the program will be run
  const { NODE_ENV: _unused, ...env } = process.env
  try {
    accessSync(homedir(), constants.W_OK)
    return env
  } catch {
    const home = join(root, 'node_modules/.cache/home')
    mkdirSync(home, { recursive: true })
    return { ...env, HOME: home }
  }
}

function fail(why) {
  console.error(`setup: ${why}`)
  process.exit(1)
}
