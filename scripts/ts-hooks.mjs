import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The compiler is a process of its own: it goes when nothing has been compiled for so long, and comes back when needed. */
const IDLE_MS = 5_000
let compiler
let idle
let compiling = 0

/** Where modules without their types are kept, by what stood in them; undefined where nothing can be written. */
const cache = openCache()

/**
 * Takes the types out of a module and leaves everything else as written. Names of functions are not kept up by extra
 * code, as other loaders do it: that code runs whenever a closure is made, and cost a request a twentieth of its time.
 */
export async function load(url, context, next) {
  if (!/^file:.*\.ts(\?|$)/.test(url)) return next(url, context)
  const file = fileURLToPath(url)
  const source = await readFile(file, 'utf8')
  const kept = cache && join(cache, createHash('sha256').update(file).update('\0').update(source).digest('base64url'))
  const known = kept && (await readFile(kept, 'utf8').catch(() => undefined))
  if (known) return { format: 'module', source: known, shortCircuit: true }
  const compiled = await withoutTypes(file, source)
  if (kept) await keep(kept, compiled)
  return { format: 'module', source: compiled, shortCircuit: true }
}

async function withoutTypes(sourcefile, source) {
  clearTimeout(idle)
  compiling += 1
  try {
    compiler ??= await loadCompiler()
    const { code } = await compiler.transform(source, {
      loader: 'ts',
      format: 'esm',
      target: 'node20',
      sourcefile,
      sourcemap: 'inline',
      sourcesContent: false,
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    })
    return code
  } finally {
    compiling -= 1
    // a compiler that is stopped over a module never answers for it
    if (compiling === 0 && compiler) idle = setTimeout(compiler.stop, IDLE_MS).unref()
  }
}

async function loadCompiler() {
  try {
    return await import('esbuild')
  } catch (cause) {
    throw new Error('the packages are not installed: run `node scripts/setup.mjs` in the checkout once', { cause })
  }
}

function openCache() {
  const folder = fileURLToPath(new URL('../node_modules/.cache/ts-1/', import.meta.url))
  try {
    mkdirSync(folder, { recursive: true })
    return folder
  } catch {
    return undefined // a read-only image: each start compiles again
  }
}

/** Whole or not at all: others may be reading. What cannot be kept is compiled again next time. */
async function keep(file, code) {
  const part = `${file}.${randomUUID()}`
  try {
    await writeFile(part, code, { mode: 0o644 })
    await rename(part, file)
  } catch {}
}
