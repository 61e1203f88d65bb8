// Plays a host process: it speaks the messages of one, and answers what the job says.

let nth = 0

process.on('message', ({ id, job }: { id: number; job: Record<string, unknown> }) => {
  nth++
  const failure = nth === 1 ? job.failure : (job.failure ?? job.failsUnlessFirst)
  const result = failure === undefined ? { status: 'ok', nth } : { status: 'failed', failure }
  process.send?.({ type: 'started', id })
  process.send?.({ type: 'done', id, result, heldBytes: job.heldBytes ?? 0 })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ type: 'ready' })
