import { existsSync } from 'node:fs'

const usual = ['/usr/bin/chromium', '/usr/bin/google-chrome', '/usr/bin/chromium-browser']

/** The browser's program: the one that was named, or where distributions put it; undefined when there is none. */
export const findBrowser = (named?: string): string | undefined =>
  named === undefined ? usual.find((path) => existsSync(path)) : existsSync(named) ? named : undefined
