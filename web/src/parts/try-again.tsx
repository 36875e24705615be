/** What can be done about a part of the page that cannot be shown. */

export function TryAgain({ onAgain }: { readonly onAgain: () => void }) {
  return (
    <div className="actions">
      <button type="button" className="button small" onClick={onAgain}>
        Try again
      </button>
      <button type="button" className="button small" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  )
}
