import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './service-process.ts'

/**
 * The project as someone who cloned it has it, in an empty folder, with its packages installed: their links are copied,
 * so that each leads to the copy's own packages, and only what came from a registry is shared with this checkout.
 */
export function freshCheckout(): { folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-checkout-'))
  for (const file of trackedFiles()) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  for (const place of ['.', ...members('packages'), ...members('services')]) {
    const from = join(root, place, 'node_modules')
    if (!existsSync(from)) continue
    const registry = join(from, '.pnpm')
    cpSync(from, join(folder, place, 'node_modules'), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (source) => source !== registry && source !== join(from, '.cache'),
    })
    if (existsSync(registry)) symlinkSync(registry, join(folder, place, 'node_modules/.pnpm'))
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

const members = (kind: string): string[] =>
  readdirSync(join(root, kind), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? join(kind, entry.name) : [],
  )

/** What git keeps; all there is, but for what is made here, where the checkout is no repository. */
function trackedFiles(): string[] {
  try {
    const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    // a file that was removed and not yet committed is still listed
    return listed.split('\0').filter((file) => file !== '' && existsSync(join(root, file)))
  } catch {
    return walk('.')
  }
}

const made = new Set(['node_modules', '.git', 'data', 'otari-files', 'coverage', '.env', 'config.yml'])

const walk = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (made.has(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? walk(path) : [path]
  })
