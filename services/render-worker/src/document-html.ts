import type { BrowserContext, Page } from 'playwright-core'

/** In a world of its own, so that nothing the page made of the built-in objects is run; open shadow trees are laid open. */
const takeOut = (maxLength: number): string => `(() => {
  const copy = (node) => {
    const twin = node.cloneNode(false)
    for (const child of node.shadowRoot?.childNodes ?? []) twin.appendChild(copy(child))
    for (const child of node.childNodes) twin.appendChild(copy(child))
    return twin
  }
  const root = document.documentElement
  if (!root) return { html: '', isCut: false }
  const hasShadows = [...document.querySelectorAll('*')].some((each) => each.shadowRoot)
  const html = '<!doctype html>' + (hasShadows ? copy(root) : root).outerHTML
  return { html: html.slice(0, ${maxLength}), isCut: html.length > ${maxLength} }
})()`

/** The document as it stands, as HTML. */
export async function documentHtml(
  context: BrowserContext,
  page: Page,
  maxLength: number,
): Promise<{ html: string; isCut: boolean }> {
  const session = await context.newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
    worldName: 'tollgate',
  })
  const { result } = await session.send('Runtime.evaluate', {
    expression: takeOut(maxLength),
    contextId: executionContextId,
    returnByValue: true,
  })
  const value: unknown = result.value
  const html = typeof value === 'object' && value !== null && 'html' in value ? value.html : undefined
  if (typeof html !== 'string') throw new Error('the browser handed over no document')
  return { html, isCut: Reflect.get(value as object, 'isCut') === true }
}
