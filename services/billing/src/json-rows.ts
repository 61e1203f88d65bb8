/**
 * Rows for `json_to_recordset`: one parameter for a whole batch, the same on both databases. Postgres stores neither NUL
 * nor half of a surrogate pair, and one such character in a name from outside would fail its whole batch: they go.
 */
export function jsonRows(rows: readonly object[]): string {
  const text = JSON.stringify(rows)
  return suspicious.test(text) ? JSON.stringify(clean(rows)) : text
}

/** JSON.stringify writes both as escapes; an escaped backslash before `u0000` is suspected in vain, which costs a moment. */
const suspicious = /\\u(?:0000|d[89a-f])/

function clean(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed()
  if (Array.isArray(value)) return value.map(clean)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [clean(name), clean(each)]))
}
