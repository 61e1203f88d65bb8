/** A Postgres array's text, such as `{1,NULL,"a b"}` or `{{1,2},{3,4}}`, with each element read by `parse`. */
export function parseArray(text: string, parse: (element: string) => unknown): unknown[] {
  // Arrays with other than the usual lower bound begin with it: `[2:3]={1,2}`.
  let at = text.indexOf('{')
  return level()

  function level(): unknown[] {
    const elements: unknown[] = []
    at++
    while (text[at] !== '}') {
      if (at >= text.length) throw new Error('the database sent an array that does not end')
      if (text[at] === '{') elements.push(level())
      else if (text[at] === '"') elements.push(parse(quoted()))
      else elements.push(bare())
      if (text[at] === ',') at++
    }
    at++
    return elements
  }

  function quoted(): string {
    let element = ''
    for (at++; text[at] !== '"'; at++) {
      if (at >= text.length) throw new Error('the database sent an array that does not end')
      if (text[at] === '\\') at++
      element += text[at]
    }
    at++
    return element
  }

  function bare(): unknown {
    const from = at
    while (at < text.length && text[at] !== ',' && text[at] !== '}') at++
    const element = text.slice(from, at)
    return element === 'NULL' ? null : parse(element)
  }
}
