interface Edit {
  before: Buffer
  after: Buffer
}

/** What files held before the editor changed them: for `undo_edit`, the latest first. */
export interface EditHistory {
  remember(path: string, edit: Edit): void
  /** The latest edit of a file, forgotten with this. */
  take(path: string): Edit | undefined
  peek(path: string): Edit | undefined
}

const MAX_BYTES = 8 * 1024 * 1024

/** Bounded: beyond it the oldest edits can no longer be undone. */
export function openEditHistory(): EditHistory {
  const edits: { path: string; edit: Edit }[] = []
  const size = () => edits.reduce((sum, { edit }) => sum + edit.before.length + edit.after.length, 0)
  const latest = (path: string) => edits.findLastIndex((entry) => entry.path === path)
  return {
    remember(path, edit) {
      edits.push({ path, edit })
      while (edits.length > 1 && size() > MAX_BYTES) edits.shift()
    },
    peek: (path) => edits[latest(path)]?.edit,
    take(path) {
      const index = latest(path)
      return index < 0 ? undefined : edits.splice(index, 1)[0]?.edit
    },
  }
}
