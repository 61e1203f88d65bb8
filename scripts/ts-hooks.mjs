import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { stop, transform } from 'esbuild'

/** The compiler is a process of its own: it goes when nothing has been loaded for so long, and comes back when needed. */
const IDLE_MS = 5_000
let idle

/**
 * Takes the types out of a module and leaves everything else as written. Names of functions are not kept up by extra
 * code, as other loaders do it: that code runs whenever a closure is made, and cost a request a twentieth of its time.
 */
export async function load(url, context, next) {
  if (!/^file:.*\.ts(\?|$)/.test(url)) return next(url, context)
  const sourcefile = fileURLToPath(url)
  const { code } = await transform(await readFile(sourcefile, 'utf8'), {
    loader: 'ts',
    format: 'esm',
    target: 'node20',
    sourcefile,
    sourcemap: 'inline',
    sourcesContent: false,
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  })
  clearTimeout(idle)
  idle = setTimeout(stop, IDLE_MS).unref()
  return { format: 'module', source: code, shortCircuit: true }
}
