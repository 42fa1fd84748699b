// Hands data to the reader as a file. Nothing of it is opened in the page.
export function save(data: Blob, path: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = path.split("/").at(-1) ?? "file";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
