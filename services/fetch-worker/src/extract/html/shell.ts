import { known, TEXT } from './tags.ts'
import { attribute, type Tree } from './tree.ts'

/** Elements that an application fills in; empty ones say that it has not run. */
const roots = new Set(['root', 'app', '__next', '__nuxt', 'q-app', 'svelte', 'app-root', '___gatsby', 'main-app'])
const FEW_CHARACTERS = 200
const MANY_SCRIPTS = 3
const APP_ROOT = known('body')

/** Whether the page that was served is only a frame that scripts fill in (WM-48). */
export function isShell(tree: Tree, visibleCharacters: number): boolean {
  if (visibleCharacters < FEW_CHARACTERS && tree.scripts >= MANY_SCRIPTS) return true
  return tree.scripts > 0 && hasEmptyRoot(tree)
}

function hasEmptyRoot(tree: Tree): boolean {
  for (let node = 1; node < tree.size; node++) {
    const id = attribute(tree, node, 'id')
    if (id !== undefined && roots.has(id) && tree.tag[node] !== APP_ROOT && isWithoutText(tree, node)) return true
  }
  return false
}

function isWithoutText(tree: Tree, node: number): boolean {
  const end = tree.end[node] ?? 0
  for (let at = node + 1; at < end; at++) if (tree.tag[at] === TEXT && /\S/.test(tree.text[at] ?? '')) return false
  return true
}

/** What stands on pages that let a browser prove itself, by who serves them. */
const challenges = [
  /_cf_chl_opt|cf-browser-verification|cf_captcha_kind|id="challenge-(?:form|running|error-text)"/,
  /geo\.captcha-delivery\.com|ddjskey/,
  /px-captcha|_pxAppId/,
  /_Incapsula_Resource|Incapsula incident ID/,
  /awsWafCookieDomainList|aws-waf-token|AwsWafIntegration/,
  /sec-if-cpt-container|bm-verify|akam-sw\.js|Pardon Our Interruption/,
]
const challengeTitles =
  /^(?:just a moment|attention required|access denied|are you a robot|please wait|verifying|one more step|pardon our interruption|security check|human verification)/i

/** A page that asks whether it is spoken to by a browser, in place of what was asked for (BR-101). */
export function isChallenge(source: string, title: string, visibleCharacters: number): boolean {
  if (visibleCharacters > CHALLENGE_CHARACTERS) return false
  const isMarked = challenges.some((mark) => mark.test(source))
  return isMarked && (challengeTitles.test(title.trim()) || visibleCharacters < FEW_CHARACTERS)
}

/** A challenge has some words of explanation, and never a page of them. */
const CHALLENGE_CHARACTERS = 1_000
