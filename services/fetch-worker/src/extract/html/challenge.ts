/** What stands on pages that let a browser prove itself, by who serves them. */
const challenges = [
  /_cf_chl_opt|cf-browser-verification|cf_captcha_kind|id="challenge-(?:form|running|error-text)"/,
  /\/cdn-cgi\/challenge-platform\/(?!(?:h\/\w+\/)?scripts\/jsd)/,
  /geo\.captcha-delivery\.com|ddjskey/,
  /px-captcha|_pxAppId/,
  /_Incapsula_Resource|Incapsula incident ID/,
  /awsWafCookieDomainList|aws-waf-token|AwsWafIntegration/,
  /sec-if-cpt-container|bm-verify|akam-sw\.js|Pardon Our Interruption/,
]
/** Loaded by ordinary pages as well: only a title tells. */
const watching = /\/cdn-cgi\/challenge-platform\//
const challengeTitles =
  /^(?:just a moment|attention required|access denied|are you a robot|please wait|verifying|one more step|pardon our interruption|security check|human verification)/i

/** A challenge has some words of explanation, and never a page of them. */
const CHALLENGE_CHARACTERS = 1_000
const FEW_CHARACTERS = 200

/** A page that asks whether it is spoken to by a browser, in place of what was asked for (BR-101). */
export function isChallenge(source: string, title: string, visibleCharacters: number): boolean {
  if (visibleCharacters > CHALLENGE_CHARACTERS) return false
  const isTitled = challengeTitles.test(title.trim())
  if (isTitled && watching.test(source)) return true
  return (isTitled || visibleCharacters < FEW_CHARACTERS) && challenges.some((mark) => mark.test(source))
}
