import { execFileSync } from 'node:child_process'
import { findBrowser } from '../src/find-browser.ts'

/** A browser to test with: the one that is there, or Debian's, installed where this may be done; else why there is none. */
export function browserForTests(): { executable?: string; why?: string } {
  const found = findBrowser(process.env.TEST_BROWSER)
  if (found) return { executable: found }
  if (process.getuid?.() !== 0) return { why: 'no Chromium is installed, and only root could install one' }
  try {
    const install = ['install', '-y', '--no-install-recommends', 'chromium']
    execFileSync('apt-get', install, {
      stdio: 'ignore',
      timeout: 180_000,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
  } catch {
    return { why: 'no Chromium is installed, and apt-get could not install one' }
  }
  const installed = findBrowser()
  return installed ? { executable: installed } : { why: 'apt-get installed no Chromium' }
}
