/** Names and types of columns, as a statement that reads rows out of one JSON parameter needs them. */
export interface Recordset {
  /** `json_to_recordset` of the parameter, under the alias `given`. */
  from(parameter: string): string
  /** The column names, each with the prefix. */
  list(prefix?: string): string
  /** Assignments for `on conflict do update`. */
  updates(): string
}

export function recordset(columns: Readonly<Record<string, string>>): Recordset {
  const names = Object.keys(columns)
  const typed = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
  return {
    from: (parameter) => `json_to_recordset(${parameter}::json) as given(${typed.join(', ')})`,
    list: (prefix = '') => names.map((name) => prefix + name).join(', '),
    updates: () => names.map((name) => `${name} = excluded.${name}`).join(', '),
  }
}
