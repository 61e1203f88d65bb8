const iso = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?$/i
const mail =
  /^(?:[a-z]{3},\s+)?(\d{1,2})\s+([a-z]{3})\s+(\d{4})(?:\s+(\d{2}:\d{2})(?::(\d{2}))?\s*(UTC?|GMT|Z|[+-]\d{4})?)?$/i

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * A provider's date in ISO form: the day, or day and time in UTC when it gave a time (S-46). ISO 8601 and mail dates
 * (RFC 1123, RFC 5322) are read, a time without a zone as UTC. Anything else, and a day that does not exist, is no date
 * (SP-20): `Date.parse` would guess, and differently on each machine.
 */
export function isoDate(text: string): string | undefined {
  const trimmed = text.trim()
  const asIso = iso.exec(trimmed)
  if (asIso) return assemble(asIso[1] ?? '', asIso[2], asIso[3], asIso[4])
  const asMail = mail.exec(trimmed)
  const month = months.indexOf((asMail?.[2] ?? '').toLowerCase()) + 1
  if (!asMail || month === 0) return undefined
  const day = `${asMail[3]}-${String(month).padStart(2, '0')}-${(asMail[1] ?? '').padStart(2, '0')}`
  return assemble(day, asMail[4], asMail[5], asMail[6])
}

function assemble(day: string, minutes?: string, seconds = '00', zone = 'Z'): string | undefined {
  const midnight = new Date(`${day}T00:00:00Z`)
  // Date rolls 30 February over to March instead of refusing it.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== day) return undefined
  if (minutes === undefined) return day
  const offset = /^[+-]/.test(zone) ? zone.replace(/^(...):?/, '$1:') : 'Z'
  const time = new Date(`${day}T${minutes}:${seconds}${offset}`)
  return Number.isNaN(time.getTime()) ? undefined : `${time.toISOString().slice(0, 19)}Z`
}
