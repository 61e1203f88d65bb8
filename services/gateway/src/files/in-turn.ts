/** Does work that concerns one id after all work under way that concerns it, whatever became of that. */
export type InTurn = <T>(id: string, work: () => Promise<T>) => Promise<T>

/** Of this process. It holds no more than what is under way. */
export function turnsById(): InTurn {
  const last = new Map<string, Promise<unknown>>()
  return (id, work) => {
    const before = last.get(id)
    const mine = before === undefined ? work() : before.then(work, work)
    last.set(id, mine)
    const over = () => {
      if (last.get(id) === mine) last.delete(id)
    }
    mine.then(over, over)
    return mine
  }
}
