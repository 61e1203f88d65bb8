import { cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDb } from '@tollgate/db'

export interface EmbeddedFolder {
  /** What `openDb` is given. */
  url: string
  /** Removes it; the database must be closed. */
  drop(): Promise<void>
}

const cache = join(import.meta.dirname, '../../../node_modules/.cache/test-services')

/** A folder with an empty embedded database: a copy, since making one takes ten times as long as opening it. */
export async function freshFolder(): Promise<EmbeddedFolder> {
  const home = await mkdtemp(join(tmpdir(), 'embedded-'))
  const url = join(home, 'db')
  await cp(await embeddedTemplate(), url, { recursive: true })
  return { url, drop: () => rm(home, { recursive: true, force: true }) }
}

/** The folder that is copied, made on first use; those who make it at the same time end with one. */
export async function embeddedTemplate(): Promise<string> {
  const template = join(cache, `pglite-${await engineVersion()}`)
  if (await exists(template)) return template
  await mkdir(cache, { recursive: true })
  const draft = await mkdtemp(join(cache, 'draft-'))
  const folder = join(draft, 'db')
  const db = await openDb({ url: folder, log: { warn() {} } })
  await db.close()
  await rename(folder, template).catch(async (error) => {
    if (!(await exists(template))) throw error
  })
  await rm(draft, { recursive: true, force: true })
  return template
}

async function engineVersion(): Promise<string> {
  const db = createRequire(import.meta.url).resolve('@tollgate/db')
  const { dependencies } = JSON.parse(await readFile(join(db, '../../package.json'), 'utf8'))
  return dependencies['@electric-sql/pglite']
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
