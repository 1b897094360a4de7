// Linked with one library as a whole; that it links is the test.
int main() {}
