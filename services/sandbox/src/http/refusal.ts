/** A refusal that the contract has a status for; its text is for whoever reads the backend's answers by hand. */
export class HttpRefusal extends Error {
  override readonly name = 'HttpRefusal'
  readonly status: number

  constructor(status: number, detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.status = status
  }
}
