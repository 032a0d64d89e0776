// Search from a folder. Browsers start no worker for pages that are opened as files, so the search's
// worker runs in a hidden frame there. The file's name tells the plugin `offline` that it need not
// load such a script from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script src="${new URL(url, location.href)}"></script>`;
      this.inner = new Promise((start, fail) => {
        this.frame.addEventListener("load", () => {
          const inner = this.frame.contentWindow;
          if (!inner.onmessage) return fail(new Error("the search's script was not loaded"));
          inner.postMessage = (data) => {
            const copy = structuredClone(data);
            setTimeout(() => this.onmessage?.({ data: copy }));
          };
          start(inner);
        });
      });
      this.inner.catch(() => this.onerror?.(new Event("error")));
      document.body.append(this.frame);
    }

    // As a worker's messages: later, and a copy, which the worker may change.
    postMessage(data) {
      const copy = structuredClone(data);
      this.inner.then((inner) => inner.onmessage({ data: copy }), () => {});
    }

    terminate() {
      this.frame.remove();
    }
  };
}
