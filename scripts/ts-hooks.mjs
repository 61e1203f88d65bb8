import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { stop, transform } from 'esbuild'

/** The compiler is a process of its own: it goes when nothing has been loaded for so long, and comes back when needed. */
const IDLE_MS = 5_000
let idle
let loading = 0

/**
 * Takes the types out of a module and leaves everything else as written. Names of functions are not kept up by extra
 * code, as other loaders do it: that code runs whenever a closure is made, and cost a request a twentieth of its time.
 */
export async function load(url, context, next) {
  if (!/^file:.*\.ts(\?|$)/.test(url)) return next(url, context)
  clearTimeout(idle)
  loading += 1
  try {
    return { format: 'module', source: await withoutTypes(fileURLToPath(url)), shortCircuit: true }
  } finally {
    loading -= 1
    // a compiler that is stopped over a module never answers for it
    if (loading === 0) idle = setTimeout(stop, IDLE_MS).unref()
  }
}

async function withoutTypes(sourcefile) {
  const { code } = await transform(await readFile(sourcefile, 'utf8'), {
    loader: 'ts',
    format: 'esm',
    target: 'node20',
    sourcefile,
    sourcemap: 'inline',
    sourcesContent: false,
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  })
  return code
}
