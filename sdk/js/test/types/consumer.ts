// Compiled, never run: what a TypeScript page would write.
import { createClient, SemelError, type Client, type Phase, type View } from '@semel/browser'
import { describe, type Message } from '@semel/browser/messages.js'
import { SemelOperationElement } from '@semel/browser/element.js'

const semel: Client = createClient({ account: 'acme', token: async () => 'secret', timeouts: { answer: 10_000 } })

export async function page(element: SemelOperationElement): Promise<Phase> {
  const op = await semel.submit('note', { text: 'Hi' }, { acceptWithin: 60_000 })
  element.operation = op
  const off = op.on((view: View) => {
    const message: Message = describe(view, 'zh')
    console.log(message.title, view.progress?.fraction, view.operation?.state)
  })
  for await (const view of op) if (view.needs) await semel.setToken('fresh')
  off()
  const { operations, nextPageToken } = await semel.history('note', { pageSize: 10 })
  console.log(operations.map(o => o.key.id), nextPageToken)
  // @ts-expect-error: there is no such phase
  if (op.view.phase === 'lost') throw new SemelError('closed')
  return (await op.settled).phase
}
